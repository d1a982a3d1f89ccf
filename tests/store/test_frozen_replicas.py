"""A replica that is frozen or cut off during an outside call: each call ends once, whoever says so first.

The rounds are drawn: who calls, with or without an approval, whether its network is held, when the other replica takes
it for gone, and when the call ends. A naive reading of the log judges: one end for each call, what comes later is a
note beside it, and the approval says the same as the end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from apcore import Registry
from pydantic import BaseModel

from grove_kit import ManualClock, config
from services.postgres import Postgres
from services.proxy import Proxy
from toolgrove import Grove
from toolgrove.store.audit import AuditQuery
from toolgrove.store.postgres import DatabaseAddress
from waiting import DEADLINE, eventually

pytestmark = pytest.mark.anyio
ROUNDS = 10
Record = Mapping[str, Any]


class Order(BaseModel):
    """What is paid for."""

    number: int


class Paid(BaseModel):
    """Nothing."""


class Bank:
    """Changes something outside, and comes back when the test says so."""

    description = "Pays an order."
    input_schema = Order
    output_schema = Paid

    def __init__(self) -> None:
        self.entered: set[int] = set()
        self.fails: set[int] = set()
        self._let_go: dict[int, anyio.Event] = {}

    def end(self, number: int) -> None:
        self._let_go.setdefault(number, anyio.Event()).set()

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        number = int(inputs["number"])
        self.entered.add(number)
        await self._let_go.setdefault(number, anyio.Event()).wait()
        if number in self.fails:
            raise ValueError("no money")
        return {}


@dataclass
class Replica:
    """One process's part: its project, its clock and its network."""

    grove: Grove
    clock: ManualClock
    network: Proxy


@dataclass
class Pair:
    """Two replicas of one project, and the bank that both call."""

    replicas: list[Replica]
    postgres: Postgres
    schema: str
    bank: Bank = field(default_factory=Bank)

    def lapse(self) -> None:
        """Have every replica be silent for a minute; whoever is well says at once that it is there."""
        self.postgres.ask(f"UPDATE {self.schema}.replica SET seen = seen - interval '60 seconds'")


@asynccontextmanager
async def paired(postgres: Postgres, database: str, folder: Path) -> AsyncIterator[Pair]:
    pair = Pair([], postgres, DatabaseAddress.of(database).schema)
    registry = Registry()
    registry.register("pay", pair.bank)
    agents = {
        "free": {"role": "editor", "tools": ["*"]},
        "watched": {"role": "editor", "tools": ["*"], "approve": ["pay"]},
    }
    with anyio.fail_after(2 * DEADLINE):
        async with AsyncExitStack() as stack:
            for _ in range(2):
                network = stack.enter_context(Proxy(postgres.port))
                store = database.replace(f":{postgres.port}/", f":{network.port}/")
                settings = config(agents=agents, workspace={"store": store}, state=str(folder))
                clock = ManualClock()
                grove = await stack.enter_async_context(Grove(settings, clock=clock, extensions=registry))
                pair.replicas.append(Replica(grove, clock, network))
            yield pair


async def records_of(replica: Replica, number: int) -> list[Record]:
    """The records of the call that paid an order: its beginning, and all that came after."""
    found = (await replica.grove.audit_log.records(AuditQuery(tool="pay", limit=1_000))).records
    calls = [one["callId"] for one in found if one.get("arguments") == {"number": number} and one["outcome"] == "begun"]
    return [one for one in found if one["callId"] == calls[0]]


async def played(pair: Pair, random: Random, number: int) -> None:
    """One drawn round, judged."""
    here, there = random.sample(pair.replicas, 2)
    agent = random.choice(("free", "watched"))
    arguments = {"number": number}
    caller = await here.grove.agent(agent)
    waiting = None

    async def has_ended(replica: Replica) -> bool:
        return len(await records_of(replica, number)) > 1

    if agent == "watched":
        waiting = (await caller.call("pay", arguments))["error"]["approvalId"]
        await here.grove.approvals.decide(waiting, approve=True, by="grace")
    if random.random() < 0.3:
        pair.bank.fails.add(number)
    steps = ["end", *random.choice(([], ["lapse"], ["freeze", "wake"], ["freeze", "lapse", "wake"]))]
    order = sorted(steps, key=lambda _: random.random())
    if "freeze" in order and order.index("wake") < order.index("freeze"):
        order.remove("wake")
        order.append("wake")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(caller.call, "pay", arguments)
        await eventually(lambda: number in pair.bank.entered)
        for step in order:
            if step == "freeze":
                here.network.hold()
            elif step == "wake":
                here.network.resume()
                _look(here)
            elif step == "end":
                pair.bank.end(number)
            else:
                pair.lapse()
                _look(there)
                await eventually(partial(has_ended, there))
        here.network.resume()
    await judged(pair.bank, here, there, agent, number, waiting, f"round {number}: {agent} {order}")


def _look(replica: Replica) -> None:
    """Have a replica look for calls whose process is gone, as it does each second."""
    replica.clock.now += 5
    journal: Any = replica.grove._journal
    journal.look()


async def judged(
    bank: Bank, here: Replica, there: Replica, agent: str, number: int, waiting: str | None, told: str
) -> None:
    request = {"number": number}

    async def is_over() -> bool:
        """What the bank did is on record, as the end or beside it."""
        return any(one["outcome"] in ("success", "failure") for one in await records_of(here, number))

    await eventually(is_over)
    begun, final, *later = await records_of(here, number)
    became = "failure" if number in bank.fails else "success"
    assert begun["outcome"] == "begun", told
    assert final.get("kind", "call") == "call", told
    if final["outcome"] == "unknown":
        assert [(one.get("kind"), one["outcome"]) for one in later] == [("late_outcome", became)], told
        assert "known later" in later[0]["details"]["note"], told
        assert final["details"]["begunAt"] == later[0]["details"]["begunAt"] == begun["timestamp"], told
    else:
        assert (final["outcome"], later) == (became, []), told
    if waiting is not None:
        kept = await there.grove.approvals.get(waiting)
        assert kept.state == ("unknown" if final["outcome"] == "unknown" else "used"), told
    if final["outcome"] == "unknown":
        _look(there)
        doubts: Any = there.grove._journal
        await eventually(lambda: doubts.unfinished.doubt(begun["request"]).became is not None)
    repeated = await (await there.grove.agent(agent)).call("pay", request)
    error = repeated.get("error", {})
    told = f"{told}: {error}"
    if final["outcome"] == "unknown":
        assert (error.get("reason"), error.get("callId")) == ("outcome_unknown", begun["callId"]), told
        assert begun["timestamp"] in error["message"], told
        assert became in error["message"], told
    else:
        assert error.get("reason") != "outcome_unknown", told


@pytest.mark.parametrize("seed", range(2))
async def test_a_call_has_one_end_whoever_freezes_closes_and_wakes(
    postgres: Postgres, database: str, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    async with paired(postgres, database, tmp_path) as pair:
        for number in range(ROUNDS):
            await played(pair, random, number)
        proof = await pair.replicas[0].grove.audit_log.verify()
        assert proof.breach is None

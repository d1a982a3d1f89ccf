"""What an operator is warned by: each trouble that really happens shows in `/metrics`, as `/ready` says it."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, get_args

import anyio
import httpx2
import psycopg
import pytest
from apcore import ModuleAnnotations
from prometheus_client.parser import text_string_to_metric_families

from grove_kit import ManualClock, config, hand
from modules import Sample, registry_of
from services.postgres import Postgres
from services.proxy import Proxy
from store.test_database_faults import sabotaged
from store.test_one_history import set_back
from store.test_stalls import held
from store_kit import EDITORS, stored
from toolgrove import Grove
from toolgrove.store.postgres import DatabaseAddress
from toolgrove.web.schemas import TroubleWord
from waiting import DEADLINE, eventually

pytestmark = pytest.mark.anyio
ADD = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {"a": 1}}
LIMITED = {"ann": {"role": "editor", "rateLimit": "1000/hour"}, "bob": {"role": "editor"}}
OTHER_FILE = "a" * 64


class Desk:
    """Whoever watches a gateway."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http

    async def ready(self) -> tuple[bool, frozenset[str]]:
        answer = await self.http.get("/ready")
        return answer.status_code == 200, frozenset(answer.json()["troubles"])

    async def text(self) -> str:
        answer = await self.http.get("/metrics")
        assert answer.status_code == 200
        return answer.text

    async def gauge(self, name: str, **labels: str) -> float | None:
        """A figure; None where there is none."""
        found = [
            sample.value
            for family in text_string_to_metric_families(await self.text())
            for sample in family.samples
            if sample.name == name and sample.labels == labels
        ]
        return found[0] if found else None

    async def shows(self, name: str, value: float, **labels: str) -> None:
        """Wait until a figure has a value."""

        async def has() -> bool:
            return await self.gauge(name, **labels) == value

        await eventually(has)

    async def agrees(self) -> frozenset[str]:
        """Wait for a moment at which `/ready` stands still, and compare; the troubles then."""
        with anyio.fail_after(DEADLINE):
            while True:
                before, text, after = await self.ready(), await self.text(), await self.ready()
                if before == after:
                    break
        families = {family.name: family for family in text_string_to_metric_families(text)}
        (is_ready,) = [sample.value for sample in families["toolgrove_ready"].samples]
        told = {sample.labels["trouble"]: sample.value for sample in families["toolgrove_trouble"].samples}
        assert set(told) == set(get_args(TroubleWord)), "each word has its gauge, also while it is 0"
        assert set(told.values()) <= {0.0, 1.0}
        assert (is_ready == 1, frozenset(word for word, value in told.items() if value)) == before
        return before[1]

    async def comes_to(self, *troubles: str) -> None:
        """Wait until these are the troubles, and the gauges say so."""

        async def has() -> bool:
            return (await self.ready())[1] == frozenset(troubles)

        await eventually(has)
        assert await self.agrees() == frozenset(troubles)


@asynccontextmanager
async def watched(grove: Grove) -> AsyncIterator[Desk]:
    gateway = grove.gateway(anonymous=True)
    gateway.load()
    transport = httpx2.ASGITransport(app=gateway.app)
    async with (
        gateway.app.router.lifespan_context(gateway.app),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=DEADLINE) as http,
    ):
        yield Desk(http)


@asynccontextmanager
async def replicas(*addresses: str, clock: ManualClock | None = None, **options: Any) -> AsyncIterator[list[Grove]]:
    with anyio.fail_after(3 * DEADLINE):
        async with AsyncExitStack() as stack:
            groves = [Grove(stored(one, LIMITED, concurrency="node"), clock=clock, **options) for one in addresses]
            yield [await stack.enter_async_context(grove) for grove in groves]


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_goes_wrong_the_gauges_say_what_ready_says(postgres: Postgres, database: str, seed: int) -> None:
    """Troubles are drawn that begin and end in any order, beside each other."""
    drawn, clock = random.Random(seed), ManualClock()
    seen: set[str] = set()
    with Proxy(postgres.port) as proxy:
        through = database.replace(f":{postgres.port}/", f":{proxy.port}/")
        async with replicas(through, database, clock=clock) as (one, two), watched(one) as desk:
            ann = await one.agent("ann")
            following = one._tree_tools.following
            assert following is not None
            ends: dict[str, Callable[[], Awaitable[object]]] = {}

            async def unreachable() -> None:
                proxy.hold()

                async def end() -> None:
                    proxy.resume()

                ends["store_unreachable"] = end

            async def behind() -> None:
                await following._one.acquire()  # it cannot look at the journal meanwhile
                clock.now += 10

                async def end() -> None:
                    following._one.release()
                    await following.catch_up()

                ends["store_behind"] = end

            async def outdated() -> None:
                await two.took(OTHER_FILE, changed=True)

                async def end() -> None:
                    await one.took(OTHER_FILE, changed=True)

                ends["file_outdated"] = end

            async def narrowed() -> None:
                await ann.call("get_node", {"nodeId": "root"})
                with psycopg.connect(postgres.address(), autocommit=True) as connection:
                    connection.execute(f"DELETE FROM {DatabaseAddress.of(database).schema}.rate_window".encode())
                await ann.call("get_node", {"nodeId": "root"})

            begin = {
                "store_behind": behind,
                "file_outdated": outdated,
                "limits_narrowed": narrowed,
                "store_unreachable": unreachable,
            }
            await one.took("b" * 64, changed=False)
            assert await desk.agrees() == frozenset()
            for word in drawn.sample(sorted(begin), len(begin)):
                await begin[word]()

                async def has(word: str = word) -> bool:
                    clock.now += 0.1  # what waits in vain is noticed by the clock
                    return word in (await desk.ready())[1]

                await eventually(has)
                seen |= await desk.agrees()
                if word == "store_unreachable" or drawn.random() < 0.4:  # the others need the database to begin
                    for ended in [word] if word in ends else []:
                        await ends.pop(ended)()
                        seen |= await desk.agrees()
            for end in ends.values():
                await end()
            await desk.comes_to("limits_narrowed")
    assert seen == set(begin), seen


async def test_a_history_that_was_set_back_shows_and_is_counted(database: str) -> None:
    clock = ManualClock()
    async with replicas(database, clock=clock) as (one,), watched(one) as desk:
        ann = await hand(one, "ann")
        await ann.ok("add_child", **ADD)
        await set_back(database, keep=True)
        await ann.ok("add_child", **ADD)
        assert await desk.gauge("toolgrove_replica_changes_behind") == 0
        await set_back(database)
        await desk.comes_to("store_diverged")
        assert await desk.gauge("toolgrove_store_divergences_total") == 1
        assert await desk.gauge("toolgrove_replica_changes_behind") is None, "nobody can say"
        clock.now += 1.0
        await desk.comes_to()
        assert await desk.gauge("toolgrove_replica_changes_behind") == 0


async def test_a_full_disk_of_the_database_shows(postgres: Postgres, database: str) -> None:
    async with replicas(database) as (one,), watched(one) as desk:
        ann = await hand(one, "ann")
        sabotaged(postgres, database, "RAISE disk_full", times=1)
        await ann.refused("add_child", **ADD)
        await desk.comes_to("store_unwritable")
        await ann.ok("add_child", **ADD)
        await desk.comes_to()


@pytest.mark.parametrize("lost", ["store", "state"])
async def test_a_file_that_was_deleted_shows(tmp_path: Path, lost: str) -> None:
    state = tmp_path / "state"
    settings = stored(tmp_path / "grove.db").model_copy(update={"state": state})
    with anyio.fail_after(DEADLINE):
        async with Grove(settings) as grove, watched(grove) as desk:
            grove.tokens.issue("ann", by="the test")
            await desk.comes_to()
            (tmp_path / "grove.db" if lost == "store" else state / "state.db").unlink()
            await desk.comes_to(f"{lost}_gone")


async def test_a_store_that_another_program_holds_shows_until_it_lets_go(tmp_path: Path) -> None:
    with anyio.fail_after(DEADLINE):
        async with Grove(stored(tmp_path / "grove.db"), clock=ManualClock()) as grove, watched(grove) as desk:
            with held(tmp_path / "grove.db"):
                await desk.comes_to("store_locked")
            await desk.comes_to()


async def test_a_gateway_that_was_told_to_stop_shows_it() -> None:
    async with Grove(config()) as grove:
        gateway = grove.gateway(anonymous=True)
        gateway.load()
        transport = httpx2.ASGITransport(app=gateway.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            desk = Desk(http)
            await desk.comes_to()
            gateway.leave()
            await desk.comes_to("stopping")


async def test_how_far_a_replica_is_behind_shows_in_seconds_and_in_changes(database: str) -> None:
    clock = ManualClock()
    async with replicas(database, database, clock=clock) as (one, two), watched(one) as desk:
        bob = await hand(two, "bob")
        following = one._tree_tools.following
        assert following is not None
        async with following._one:  # it cannot look meanwhile
            before = await desk.gauge("toolgrove_replica_seconds_behind")
            assert before is not None
            clock.now += 7.5
            await desk.shows("toolgrove_replica_seconds_behind", before + 7.5)
        async with following._turns.line:  # it looks, and cannot take over what it sees
            for _ in range(3):
                await bob.ok("add_child", **ADD)
            following.ring()

            async def knows() -> bool:
                return bool(await desk.gauge("toolgrove_replica_changes_behind"))

            await eventually(knows)
            known = await desk.gauge("toolgrove_replica_changes_behind")
            assert known in (1, 2, 3), known
        await desk.shows("toolgrove_replica_changes_behind", 0)
        await desk.shows("toolgrove_replica_seconds_behind", 0)


async def test_one_process_alone_is_never_behind(tmp_path: Path) -> None:
    async with Grove(stored(tmp_path / "grove.db")) as grove, watched(grove) as desk:
        assert "toolgrove_replica_seconds_behind" not in await desk.text()
        assert "toolgrove_replica_changes_behind" not in await desk.text()


class Bank(Sample):
    """Pays when it is let."""

    def __init__(self) -> None:
        super().__init__(annotations=ModuleAnnotations(destructive=True, open_world=True))
        self.asked, self.goes_on = 0, anyio.Event()
        self.execute = self.pay

    async def pay(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        self.asked += 1
        await self.goes_on.wait()
        return {}


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgresql"])
async def test_calls_to_the_outside_show_while_they_are_open_and_when_nobody_knows_how_they_ended(
    tmp_path: Path, request: pytest.FixtureRequest, store: str
) -> None:
    bank = Bank()
    settings = config(agents=EDITORS)
    if store != "memory":
        settings = stored(tmp_path / "grove.db" if store == "sqlite" else request.getfixturevalue("database"))
    show = partial(Desk.shows, name="toolgrove_outside_calls")
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(settings, extensions=registry_of({"pay": bank})) as grove, watched(grove) as desk:
            ann = await grove.agent("ann")
            assert await desk.gauge("toolgrove_outside_calls", state="begun") == 0
            async with anyio.create_task_group() as calls:
                for number in range(2):
                    calls.start_soon(ann.call, "pay", {"number": number})
                await show(desk, value=2, state="begun")
                bank.goes_on.set()
            await show(desk, value=0, state="begun")
            assert await desk.gauge("toolgrove_outside_calls", state="unknown") == 0
            bank.goes_on = anyio.Event()
            async with anyio.create_task_group() as calls:
                calls.start_soon(ann.call, "pay", {"number": 7})
                await eventually(lambda: bank.asked == 3)
                grove.cut_off()
            await show(desk, value=0, state="begun")
            await show(desk, value=1, state="unknown")


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgresql"])
async def test_approvals_that_wait_show_until_a_person_decides(
    tmp_path: Path, request: pytest.FixtureRequest, store: str
) -> None:
    agents = {"ann": {"role": "editor", "approve": ["add_child"]}}
    settings = config(agents=agents)
    if store != "memory":
        settings = stored(tmp_path / "grove.db" if store == "sqlite" else request.getfixturevalue("database"), agents)
        settings = settings.model_copy(update={"state": tmp_path})
    async with Grove(settings) as grove, watched(grove) as desk:
        assert await desk.gauge("toolgrove_approvals_waiting") == 0
        ann = await hand(grove, "ann")
        asked = [await ann.refused("add_child", **{**ADD, "payloadProps": {"a": at}}) for at in range(3)]
        assert await desk.gauge("toolgrove_approvals_waiting") == 3
        await grove.approvals.decide(asked[0]["approvalId"], approve=True, by="eve")
        await grove.approvals.decide(asked[1]["approvalId"], approve=False, by="eve")
        assert await desk.gauge("toolgrove_approvals_waiting") == 1


async def test_a_tool_that_keeps_the_event_loop_for_itself_shows_for_a_minute() -> None:
    async def keep(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        ends = time.monotonic() + 1.0
        while time.monotonic() < ends:
            pass
        return {}

    async with Grove(config(), extensions=registry_of({"greedy": Sample(keep)})) as grove, watched(grove) as desk:
        assert "error" not in await (await grove.agent("editor")).call("greedy", {})

        async def is_late() -> bool:
            return (await desk.gauge("toolgrove_loop_delay_seconds") or 0) >= 0.75

        await eventually(is_late)
        assert await is_late(), "whoever asks next is told as well"


async def test_the_delay_of_the_event_loop_goes_by_the_clock_and_is_forgotten_after_a_minute() -> None:
    clock = ManualClock()
    async with Grove(config(), clock=clock) as grove, watched(grove) as desk:
        assert await desk.gauge("toolgrove_loop_delay_seconds") == 0
        clock.now += 5
        await desk.shows("toolgrove_loop_delay_seconds", 4.75)


async def test_a_scrape_keeps_nobody_waiting_while_the_database_is_silent(postgres: Postgres, database: str) -> None:
    with Proxy(postgres.port) as proxy:
        through = database.replace(f":{postgres.port}/", f":{proxy.port}/")
        async with replicas(through) as (one,), watched(one) as desk:
            assert await desk.gauge("toolgrove_audit_records") is not None
            proxy.hold()
            ended: list[str] = []

            async def ask(address: str) -> None:
                await desk.http.get(address)
                ended.append(address)

            async with anyio.create_task_group() as asking:
                asking.start_soon(ask, "/metrics")
                asking.start_soon(ask, "/health")
            assert ended == ["/health", "/metrics"]
            await desk.comes_to("store_unreachable")
            text = await desk.text()
            for unknown in ("toolgrove_audit_records", "toolgrove_approvals_waiting"):
                assert unknown not in text, "what is not known is left out"
            assert 'toolgrove_outside_calls{state="begun"} 0.0' in text
            proxy.resume()
            await desk.comes_to()
            await desk.shows("toolgrove_approvals_waiting", 0)

"""One run: clients at replicas while things break, and then what is left, as everybody shows it.

`observed` gives the history of a run. It judges nothing: that is for `histories.checks`.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import anyio
import httpx2
from anyio import to_thread

from e2e.wire import ERAS, MODERN
from histories import stored
from histories.clients import TOOLS, Client, planted
from histories.deployment import Deployment, Kind, Replica, agents_of
from histories.faults import FaultMaker
from histories.history import History, Look, Tree
from histories.lines import Answer, Line
from histories.payments import PAY, Paid, Payer, Person, approvals, unfinished
from services.postgres import Postgres
from toolgrove.store.state import OPERATOR

JUDGE = "judge"
"""An agent that plants, and looks at what is left."""
_LOOKS_EVERY = 0.2
_ANSWERED_WITHIN = 20.0
"""Seconds in which a replica that says that it is ready must answer the judge."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run consists of; all else is drawn from the seed."""

    seed: str
    store: Kind = "postgres"
    replicas: int = 2
    clients: int = 8
    payers: int = 2
    """Agents that pay, and do nothing else: each payment waits for a person."""
    seconds: float = 15.0
    pause: float = 0.06
    """Seconds that a client thinks, on average."""
    faults: Sequence[str] = ()
    longest: float = 2.5
    """Seconds that a fault lasts, at most."""
    rest: float = 1.5
    """Seconds between two faults, on average."""
    concurrency: str | None = None
    patience: float = 45.0
    """Seconds after the last fault in which a replica must be ready; the machine may be busy with other tests."""


async def observed(plan: Plan, folder: Path, postgres: Postgres | None = None) -> History:
    """Run it; the database is the given one, or one of its own."""
    history = History(seed=plan.seed)
    draw = Random(plan.seed)
    names = [f"c{number}" for number in range(plan.clients)]
    paid = Paid(history)
    payers = {name: {**rights, "approve": [PAY]} for name, rights in agents_of(_payers(plan), [PAY]).items()}
    deployment = await to_thread.run_sync(
        lambda: Deployment(
            folder,
            plan.store,
            agents_of([*names, JUDGE], TOOLS) | payers,
            paid.tools,
            replicas=plan.replicas if plan.store == "postgres" else 1,
            concurrency=plan.concurrency or draw.choice(("node", "node", "tree")),
            postgres=postgres,
            with_standby="failover" in plan.faults,
        )
    )
    try:
        await _work(plan, draw, names, deployment, history)
        await _ready(plan, deployment, history)
        await _look_at_what_is_left(plan, names, deployment, history)
    finally:
        await to_thread.run_sync(deployment.close)
        await to_thread.run_sync(paid.close)
    return history


async def _work(plan: Plan, draw: Random, names: Sequence[str], deployment: Deployment, history: History) -> None:
    version = await _plant(names, deployment)
    numbers = itertools.count(1)
    clients: list[Client | Payer | Person] = [
        Payer(name, ERAS[number % len(ERAS)], deployment.tokens[name], history, numbers, deployment.replicas)
        for number, name in enumerate(_payers(plan))
    ]
    clients.append(Person(deployment.tokens[OPERATOR], history, deployment.replicas))
    for number, name in enumerate(names):
        home = draw.choice(deployment.replicas) if draw.random() < 0.75 else None
        era, token = ERAS[number % len(ERAS)], deployment.tokens[name]
        clients.append(
            Client(
                name, era, token, history, numbers, deployment.replicas, home=home, pause=plan.pause, version=version
            )
        )
    maker = FaultMaker(deployment, history, plan.faults, longest=plan.longest, pause=plan.rest)
    async with anyio.create_task_group() as watching:
        watching.start_soon(_watch, deployment, history)
        async with anyio.create_task_group() as working:
            for client in clients:
                working.start_soon(client.work)
            if plan.faults:
                working.start_soon(maker.work)
            await anyio.sleep(plan.seconds)
            maker.stop()
            for client in clients:
                client.stop()
        watching.cancel_scope.cancel()


def _payers(plan: Plan) -> Sequence[str]:
    return [f"payer{number}" for number in range(plan.payers)]


async def _plant(names: Sequence[str], deployment: Deployment) -> str:
    line = _judge(deployment, deployment.replicas[0])
    root = await _told(line, "get_node", {"nodeId": "root"})
    form = {"json": planted(names), "strategy": "upsert", "matchBy": "nodeId", "versionToken": root["version"]}
    made = await _told(line, "import_merge", form)
    await line.close()
    return str(made["version"])


def _judge(deployment: Deployment, replica: Replica, agent: str = JUDGE) -> Line:
    return Line(replica, agent, MODERN, deployment.tokens[agent])


async def _told(line: Line, tool: str, arguments: dict[str, Any], version: str | None = None) -> dict[str, Any]:
    """The answer of a call that has to succeed; one that asks for patience gets it."""
    ends = time.monotonic() + _ANSWERED_WITHIN
    while True:
        answer: Answer = await line.call(tool, arguments, version)
        if answer.told == "success":
            return dict(answer.result)
        assert time.monotonic() < ends, f"{line.replica.name}: {tool}: {dict(answer.error)}"
        await anyio.sleep(0.2)


async def _watch(deployment: Deployment, history: History) -> None:
    """What each replica says of itself, several times a second."""
    async with httpx2.AsyncClient(timeout=1.0, verify=False) as http:
        while True:
            for replica in deployment.replicas:
                history.looks.append(await _look(http, replica))
            await anyio.sleep(_LOOKS_EVERY)


async def _look(http: httpx2.AsyncClient, replica: Replica) -> Look:
    try:
        answer = await http.get(f"http://127.0.0.1:{replica.port}/ready")
        troubles = answer.json()["troubles"]
    except (httpx2.TransportError, ValueError, KeyError):
        return Look(replica=replica.name, at=time.monotonic(), status=0)
    return Look(replica=replica.name, at=time.monotonic(), status=answer.status_code, troubles=troubles)


async def _ready(plan: Plan, deployment: Deployment, history: History) -> None:
    """Wait until every replica says that it is, now that nothing is broken."""
    async with httpx2.AsyncClient(timeout=1.0, verify=False) as http:
        for replica in deployment.replicas:
            ends = time.monotonic() + plan.patience
            while replica.runs and (look := await _look(http, replica)).status != 200:
                history.looks.append(look)
                if time.monotonic() > ends:
                    history.wrong.append(f"{replica.name} is not ready though nothing is broken: {look.troubles}")
                    break
                await anyio.sleep(_LOOKS_EVERY)


async def _look_at_what_is_left(plan: Plan, names: Sequence[str], deployment: Deployment, history: History) -> None:
    if history.wrong:  # one that does not answer, or not any more, would be asked in vain
        await to_thread.run_sync(_what_is_stored, deployment, history)
        return
    try:
        await _trees(deployment, history)
        await _approvals(plan, deployment, history)
        line = _judge(deployment, deployment.replicas[-1])
        history.snapshots = [item["label"] for item in (await _told(line, "snapshot_list", {}))["items"]]
        await line.close()
        for name in names:
            line = _judge(deployment, deployment.replicas[-1], name)
            for item in (await _told(line, "list_bookmarks", {}))["items"]:
                history.bookmarks[f"bookmark {name} {item['label']}"] = item["nodeId"]
            await line.close()
    except AssertionError as problem:
        history.wrong.append(f"a replica does not answer though nothing is broken: {problem}")
    await to_thread.run_sync(_what_is_stored, deployment, history)
    if deployment.kind != "memory":
        await _fresh_start(deployment, history)
    for replica in deployment.replicas:
        if "Traceback" in replica.log:
            history.wrong.append(f"{replica.name} logged: …{replica.log[replica.log.index('Traceback') :][:1500]}")


async def _trees(deployment: Deployment, history: History) -> None:
    """The tree of each replica, all of one version: that of a last change, which all must have."""
    lines = [_judge(deployment, replica) for replica in deployment.replicas]
    for _ in range(5):  # what a client gave up waiting for may still come to its end
        last = await _last_change(lines[0])
        shown = [await _told(line, "export_subtree", {"nodeId": "root"}, last) for line in lines]
        history.trees = [
            Tree.of_document(line.replica.name, json.loads(one["json"])) for line, one in zip(lines, shown, strict=True)
        ]
        if {one["version"] for one in shown} == {last}:
            break
    for line in lines:
        await line.close()


async def _approvals(plan: Plan, deployment: Deployment, history: History) -> None:
    """What became of each approval; what a process claimed or began that is gone is settled after a while."""
    ends = time.monotonic() + plan.patience
    replica, headers = deployment.replicas[0], deployment.headers("operator")
    async with httpx2.AsyncClient(headers=headers, timeout=_ANSWERED_WITHIN, verify=False) as http:
        while True:
            is_open = await unfinished(http, replica)  # first: who closes a call settles its approval with it
            history.approvals = [*await approvals(http, replica)]
            is_settled = not is_open and all(one["state"] != "claimed" for one in history.approvals)
            if is_settled or history.may_lose or time.monotonic() > ends:
                return
            await anyio.sleep(_LOOKS_EVERY)


async def _last_change(line: Line) -> str:
    """The version of a change of the judge's own, made on whatever stands."""
    for number in range(20):
        root = await _told(line, "get_node", {"nodeId": "root"})
        form = {"nodeId": "ground", "label": f"{root['version']} {number}", "versionToken": root["version"]}
        answer = await line.call("bookmark", form)
        if answer.told == "success":
            return str(answer.result["version"])
        await anyio.sleep(_LOOKS_EVERY)
    raise AssertionError(f"{line.replica.name} takes no change: {dict(answer.error)}")


def _what_is_stored(deployment: Deployment, history: History) -> None:
    """Stop all, and look into what they leave."""
    for replica in deployment.replicas:
        if replica.runs:
            code = replica.stop()
            if code != 0:
                history.wrong.append(f"{replica.name} ends with {code} when told to stop")
    rows = deployment.rows()
    if rows is None:
        return
    try:
        history.stored = stored.replayed(rows)
        history.audit = deployment.audit()
    except (AssertionError, LookupError, TypeError, ValueError) as problem:
        history.wrong.append(f"what is stored cannot be read: {problem!r}")
    verdict = deployment.verdict()
    if verdict is not None:
        history.wrong.append(verdict)


async def _fresh_start(deployment: Deployment, history: History) -> None:
    newcomer = await to_thread.run_sync(deployment.newcomer)
    try:
        await to_thread.run_sync(newcomer.start)
    except AssertionError as problem:
        history.wrong.append(f"no process can start on the store any more: {str(problem)[:600]}")
        return
    line = _judge(deployment, newcomer)
    shown = await _told(line, "export_subtree", {"nodeId": "root"})
    history.trees.append(Tree.of_document("a fresh start", json.loads(shown["json"])))
    await line.close()

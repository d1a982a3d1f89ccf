"""kill -9 of one of two replicas behind HAProxy: how long until the other has all of its work."""

import asyncio
import contextlib
import json
import os
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench.crowd import Client
from bench.gates import Ours
from bench.peers import free_port
from bench.replicas.fleet import AGENTS, Setting, replicas
from bench.report import Report, say
from bench.wire import MODERN, Connection
from services.haproxy import HAProxy
from toolgrove.store.state import OPERATOR

WITHIN = 5.0
PATIENCE = 40.0
PAYER = "payer"


def takeover(report: Report, setting: Setting) -> None:
    say("kill -9 of one replica")
    silent = free_port()
    schema = {"type": "object", "properties": {}}
    pay = {
        "url": f"http://127.0.0.1:{silent}/",
        "method": "POST",
        "inputSchema": schema,
        "allowPrivate": True,
        "timeout": 60,
    }
    agents = {PAYER: {"role": "editor", "tools": ["pay"], "approve": ["pay"]}}
    with (
        replicas(setting, "takeover", 2, agents=agents, httpTools={"pay": pay}) as (one, two),
        balancing(one, two) as at,
    ):
        told = asyncio.run(killed(one, two, at, silent))
    table = report.table("kill -9 of one replica: seconds until the other has taken over")
    for what, seconds in told.items():
        table.add(what, {"two": seconds}, target=f"≤ {WITHIN:.0f} s", met=seconds <= WITHIN)


@contextlib.contextmanager
def balancing(one: Ours, two: Ours) -> Iterator[HAProxy]:
    """HAProxy before both, when it has seen both."""
    balancer = HAProxy(one.port or 0, two.port or 0)
    try:
        while not (balancer.is_up("one") and balancer.is_up("two")):
            time.sleep(0.05)
        yield balancer
    finally:
        balancer.close()


async def killed(one: Ours, two: Ours, balancer: HAProxy, silent: int) -> dict[str, float]:
    """Seconds from the kill: of the agents' calls, of a call that was under way, and of the approval that it used."""
    arrived = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        with contextlib.closing(writer), contextlib.suppress(asyncio.CancelledError):
            await reader.read()

    async with await asyncio.start_server(hold, "127.0.0.1", silent):
        approval, paying = await pay_at(one, two)
        await arrived.wait()
        served = {agent: asyncio.create_task(_served(balancer.port, one.tokens[agent], agent)) for agent in AGENTS}
        await asyncio.sleep(1)
        os.kill(one.pid, signal.SIGKILL)
        begun = time.monotonic()
        unknown = partial(asked, two, f"/api/audit?agent={PAYER}&outcome=unknown")
        call, claim = await asyncio.gather(
            asyncio.to_thread(seconds_until, begun, lambda: unknown()["items"]),
            asyncio.to_thread(
                seconds_until, begun, lambda: asked(two, f"/api/approvals/{approval}")["state"] != "claimed"
            ),
        )
        last = max([await task for task in served.values()])
        paying.cancel()
        await asyncio.gather(paying, return_exceptions=True)
    return {
        f"every one of {len(AGENTS)} agents is answered again, by way of HAProxy": max(0.0, last - begun),
        "a call that was under way is closed as unknown, and its agent can be told": call,
        "an approval that it had claimed is settled": claim,
    }


async def pay_at(one: Ours, two: Ours) -> tuple[str, asyncio.Task[Any]]:
    """A call that changes something: asked for at one replica, approved at the other, under way at the first."""
    async with Client(partial(one.connect, MODERN, PAYER)) as client:
        approval = str((await client.call("pay", {}))["error"]["approvalId"])
    await asyncio.to_thread(asked, two, f"/api/approvals/{approval}", {"approve": True})

    async def pay() -> None:
        with contextlib.suppress(EOFError, OSError):  # it ends with its replica
            async with Client(partial(one.connect, MODERN, PAYER)) as client:
                await client.call("pay", {})

    return approval, asyncio.create_task(pay())


async def _served(port: int, token: str, agent: str) -> float:
    """The moment at which an agent is answered again after it was not, or was for three seconds without a break."""
    connect = partial(Connection, port, f"/agents/{agent}/mcp", MODERN, token)
    good, broken = time.monotonic(), False
    while time.monotonic() - good < 3.0 or broken:
        try:
            async with asyncio.timeout(2), Client(connect) as client:
                answer = await client.call("get_node", {"nodeId": "root"})
            if "error" not in answer and broken:
                return time.monotonic()
        except (OSError, TimeoutError, EOFError, json.JSONDecodeError, KeyError):
            broken = True
        await asyncio.sleep(0.05)
    return good


def seconds_until(begun: float, done: Callable[[], object]) -> float:
    """Seconds since a moment until something is so; for ever counts as the end of the patience."""
    while not done() and time.monotonic() - begun < PATIENCE:
        time.sleep(0.05)
    return time.monotonic() - begun


def asked(gate: Ours, path: str, form: dict[str, Any] | None = None) -> Any:
    """What the operator is told at an address."""
    asking = urllib.request.Request(f"http://127.0.0.1:{gate.port}{path}")
    asking.add_header("Authorization", f"Bearer {gate.tokens[OPERATOR]}")
    if form is not None:
        asking.add_header("Content-Type", "application/json")
        asking.data = json.dumps(form).encode()
    with urllib.request.urlopen(asking, timeout=20) as answer:
        return json.load(answer)

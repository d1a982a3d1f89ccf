"""How long a change at one replica takes to show at the other: to whoever watches its events, and in a console."""

import asyncio
import contextlib
import json
import random
import statistics
import time
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from playwright.sync_api import sync_playwright

from bench.crowd import Client
from bench.gates import Ours
from bench.gateway import CHROMIUM, FLAGS, said, version_of
from bench.measure import percentile
from bench.replicas.fleet import AGENTS, Setting, replicas
from bench.replicas.races import Race, changed, planted, write
from bench.report import Report, Table, say
from bench.store import PAYLOAD
from bench.wire import MODERN
from toolgrove.store.state import OPERATOR

PACE = 20.0
"""Changes per second of the one whose changes are watched for."""
CROWDED = 8
LAG_MS, CONSOLE_MS = 100.0, 200.0
FORM = {"parentNodeId": "root", "payloadType": "T", "payloadProps": PAYLOAD}
# The moment at which a frame with more rows than before is on its way to the screen.
_WATCH = """
window.__shown = [];
new MutationObserver(() => {
    const rows = document.querySelectorAll("[data-testid=tree-row]").length;
    if (rows > (window.__rows ?? 0)) {
        window.__rows = rows;
        window.__shown.push([rows, performance.timeOrigin + performance.now()]);
    }
}).observe(document, { childList: true, subtree: true });
"""


def lag(report: Report, setting: Setting) -> None:
    with replicas(setting, "lag", 2) as (one, two):
        table = report.table("From the answer at one replica until the other shows the change, milliseconds")
        say("lag between replicas")
        calm = asyncio.run(watched(one, two, setting.effort.changes, busy=False))
        p99, setting.figures["notice"] = percentile(calm, 99), statistics.median(calm)
        table.add(f"to its watchers, {PACE:.0f} changes/s: p50", {"two": statistics.median(calm)})
        table.add("… p99", {"two": p99}, target=f"≤ {LAG_MS:.0f} ms", met=p99 <= LAG_MS)
        busy = asyncio.run(watched(one, two, setting.effort.changes, busy=True))
        what = f"… p50, while {CROWDED} others write without a pause, half of them at each"
        table.add(what, {"two": statistics.median(busy)})
        table.add("… p99", {"two": percentile(busy, 99)})
    with replicas(setting, "console", 2) as (one, two):
        console(report, table, one, two, setting.effort.changes // 4)


async def watched(one: Ours, two: Ours, count: int, *, busy: bool) -> list[float]:
    """How long each of so many changes took."""
    events: asyncio.Queue[tuple[float, dict[str, Any]]] = asyncio.Queue()
    lags: list[float] = []
    async with AsyncExitStack() as stack:
        watching = asyncio.create_task(watch(two, events))
        await events.get()
        client = await stack.enter_async_context(Client(partial(one.connect, MODERN, AGENTS[0])))
        others = [asyncio.create_task(other((one, two)[at % 2], at + 1)) for at in range(CROWDED if busy else 0)]
        version = (await client.call("get_node", {"nodeId": "root"}))["version"]
        for _ in range(count):
            answer = await changed(Race(), client, "add_child", FORM, version)
            answered, version = time.perf_counter(), answer["version"]
            while True:
                heard, event = await asyncio.wait_for(events.get(), 20)
                if event["type"] == "tree_changed" and answer["nodeId"] in event["nodeIds"]:
                    break
            lags.append(max(0.0, (heard - answered) * 1000))
            await asyncio.sleep(random.uniform(0.5, 1.5) / PACE)
        for task in (watching, *others):
            task.cancel()
        await asyncio.gather(watching, *others, return_exceptions=True)
    return lags


async def other(gate: Ours, number: int) -> None:
    async with Client(partial(gate.connect, MODERN, AGENTS[number])) as client:
        race = Race()
        await write(race, [client], await planted(race, client), float("inf"))


async def watch(gate: Ours, events: asyncio.Queue[tuple[float, dict[str, Any]]]) -> None:
    """The events that a console at this gateway is sent, each with the moment at which it came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port or 0, limit=1 << 20)
    with contextlib.closing(writer):
        head = (
            f"GET /api/events HTTP/1.1\r\nhost: 127.0.0.1:{gate.port}\r\naccept: text/event-stream\r\n"
            f"authorization: Bearer {gate.tokens[OPERATOR]}\r\n\r\n"
        )
        writer.write(head.encode())
        while line := await reader.readline():
            if line.startswith(b"data:"):
                events.put_nowait((time.perf_counter(), json.loads(line[5:])))


def console(report: Report, table: Table, one: Ours, two: Ours, count: int) -> None:
    """A browser at one replica, changes at the other."""
    if CHROMIUM is None:
        report.facts["Chromium"] = "ABSENT: no console was watched (apt install chromium, or CHROMIUM=/path)"
        return
    say("a console at the other replica")
    with sync_playwright() as playwright, contextlib.closing(one.connect(MODERN, AGENTS[0])) as client:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 1600})
        token = f"#token={two.tokens[OPERATOR]}"
        page.goto(f"http://127.0.0.1:{two.port}/console{token}")
        page.get_by_test_id("live-state").wait_for()
        said(client, "add_child", {**FORM, "versionToken": version_of(client)})
        page.add_init_script(_WATCH)
        page.goto("about:blank")
        page.goto(f"http://127.0.0.1:{two.port}/console#/tree/{AGENTS[0]}")
        page.get_by_test_id("tree-row").nth(1).wait_for()
        shown = []
        for _ in range(count):
            rows = int(page.evaluate("window.__rows"))
            said(client, "add_child", {**FORM, "versionToken": version_of(client)})
            answered = time.time() * 1000
            page.wait_for_function("rows => window.__rows > rows", arg=rows)
            (_, at) = page.evaluate("window.__shown.at(-1)")
            shown.append(max(0.0, at - answered))
            page.wait_for_timeout(random.uniform(20, 400))
        browser.close()
    p99 = percentile(shown, 99)
    table.add("on the screen of a console there: p50", {"two": statistics.median(shown)})
    table.add("… p99", {"two": p99}, target=f"≤ {CONSOLE_MS:.0f} ms", met=p99 <= CONSOLE_MS)

"""Watching a project: its events, its log from either end, and a watcher who is there when the server ends."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import anyio
import pytest
from starlette.types import Message

from toolgrove import Config, Grove
from waiting import DEADLINE, eventually
from web.gateway import PROJECT, Gateway, serving, started

pytestmark = pytest.mark.anyio


async def test_a_watcher_hears_what_happens_and_is_let_go_when_the_server_ends(tmp_path: Path) -> None:
    with started(tmp_path) as gateway, anyio.fail_after(DEADLINE):
        async with gateway.http("operator") as http, http.stream("GET", "/api/events") as watched:
            lines = (json.loads(line[6:]) async for line in watched.aiter_lines() if line.startswith("data: "))
            assert (await anext(lines))["type"] == "watching"
            calls = [{"tool": "get_node", "arguments": {"nodeId": "root"}}]
            await http.post("/agents/editor/runs", json={"calls": calls})
            heard = await anext(lines)
            assert (heard["type"], heard["agent"], heard["tool"]) == ("tool_succeeded", "editor", "get_node")
            gateway.process.terminate()
            assert [event async for event in lines if event["type"] != "heartbeat"] == []
            assert await anyio.to_thread.run_sync(gateway.process.wait) == 0
    assert "Traceback" not in gateway.log


async def test_an_event_is_written_once_for_all_who_watch() -> None:
    watchers = 500
    told: list[list[bytes]] = [[] for _ in range(watchers)]
    async with Grove(Config()) as grove:
        app = grove.asgi_app(anonymous=True)

        async def watch(chunks: list[bytes]) -> None:
            bodies = [b""]

            async def receive() -> Message:
                if not bodies:
                    await anyio.sleep_forever()
                return {"type": "http.request", "body": bodies.pop()}

            async def send(message: Message) -> None:
                if message["type"] == "http.response.body":
                    chunks.append(message["body"])

            headers = [(b"host", b"127.0.0.1")]
            scope = {"type": "http", "http_version": "1.1", "method": "GET", "path": "/api/events", "headers": headers}
            await app({**scope, "query_string": b"", "client": ("127.0.0.1", 1)}, receive, send)

        async with app.router.lifespan_context(app), anyio.create_task_group() as tasks:
            for chunks in told:
                tasks.start_soon(watch, chunks)
            await eventually(lambda: all(told))
            await (await grove.agent("reader")).call("get_node", {"nodeId": "root"})
            await eventually(lambda: all(len(chunks) > 1 for chunks in told))
            tasks.cancel_scope.cancel()
    assert b"event: tool_succeeded" in told[0][1]
    assert len({id(chunks[1]) for chunks in told}) == 1, "each watcher got bytes of its own"


async def _called(gateway: Gateway, times: int) -> None:
    call = {"tool": "get_node", "arguments": {"nodeId": "root"}}
    async with gateway.http("operator") as http:
        for _ in range(times // 100):
            await http.post("/agents/editor/runs", json={"calls": [call] * 100})


async def test_the_log_is_read_from_its_newest_record_page_by_page(gateway: Gateway) -> None:
    await _called(gateway, 200)
    async with gateway.http("operator") as http:
        seen: list[int] = []
        before = ""
        while len(seen) < 150:
            page = (await http.get(f"/api/audit?newest=1&limit=60{before}")).json()
            seen += [record["number"] for record in page["items"]]
            before = f"&before={page['next']}"
    assert seen == list(range(seen[0], seen[0] - len(seen), -1))
    assert seen[0] >= 200


@pytest.mark.parametrize("order", ["", "&newest=1"])
async def test_an_export_holds_all_of_the_log_or_as_much_as_is_asked_for(tmp_path: Path, order: str) -> None:
    with serving(tmp_path, PROJECT) as gateway:
        await _called(gateway, 1_100)
        async with gateway.http("operator") as http:
            lines = (await http.get(f"/api/audit/export?format=jsonl&kind=call{order}")).text.splitlines()
            table = (await http.get(f"/api/audit/export?format=csv&kind=call{order}")).text
            few = (await http.get(f"/api/audit/export?kind=call&limit=3{order}")).text.splitlines()
    numbers = [json.loads(line)["number"] for line in lines]
    assert len(set(numbers)) == 1_100
    assert numbers == sorted(numbers, reverse=bool(order))
    assert [int(row["number"]) for row in csv.DictReader(io.StringIO(table))] == numbers
    assert few == lines[:3]

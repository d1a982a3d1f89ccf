"""What a server says while a call runs goes to the client that made it: its questions, where allowed, and its log."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from starlette.applications import Starlette

from lane.twins import LEGACY, Asked, Twin, head_of, request, with_length
from mcp_serve.http import StreamableHTTP
from mcp_serve.lane import Lane
from mcp_text import told
from pool.mcp.mcp_kit import Journal
from pool.mcp.test_news import ALL, newsroom
from pool.mcp.test_resources import project
from toolgrove import Grove
from toolgrove.mcp_face import mcp_endpoint
from waiting import eventually

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
SECRET = "hunter2-hunter2-hunter2"
WAYS = pytest.mark.parametrize(
    ("transport", "protocol", "era"),
    [
        ("stdio", "modern", "auto"),
        ("stdio", "modern", "legacy"),
        ("stdio", "legacy", "auto"),
        ("http", "legacy", "legacy"),
        ("http", "modern", "auto"),
    ],
)
Answer = Callable[[Any], types.ElicitResult]


class Person:
    """Sits at a client: sees questions, answers them, and hears the log."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[Any] = []
        self.heard: list[tuple[str, Any, str | None]] = []
        self._answer = answer

    async def elicit(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        return self._answer(params)

    async def log(self, params: Any) -> None:
        self.heard.append((params.level, params.data, params.logger))


def accepts(params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=None if params.mode == "url" else {"size": 3})


def declines(params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="decline")


@asynccontextmanager
async def at(grove: Grove, era: str, person: Person, *, asks: bool = True) -> AsyncIterator[Client]:
    endpoint = mcp_endpoint(await grove.agent("all"), "1")
    callbacks: Any = {"logging_callback": person.log, **({"elicitation_callback": person.elicit} if asks else {})}
    async with Client(endpoint.server, mode=era, cache=None, **callbacks) as client:
        yield client


def text(result: Any) -> Any:
    return json.loads(result.content[0].text)


def with_questions(servers: Json) -> Json:
    return {"up": {**servers["up"], "elicitation": True}}


@WAYS
async def test_a_question_goes_to_the_client_of_the_call_and_its_answer_back(
    transport: str, protocol: str, era: str, tmp_path: Path
) -> None:
    with newsroom(transport, protocol, tmp_path / "journal") as servers:
        async with project(with_questions(servers), all=ALL) as grove:
            person = Person(accepts)
            async with at(grove, era, person) as client:
                assert text(await client.call_tool("up_ask")) == [["elicitation"], "s1", "accept", {"size": 3}]
                (question,) = person.asked
                assert question.message == "Server 'up' asks: How large?"
                assert question.requested_schema["required"] == ["size"]
                opened = await client.call_tool("up_open", {"uri": "https://sign.example/x?y=1"})
                assert text(opened)[1:] == ["s1", "accept", None]
                assert person.asked[1].message == "Server 'up' asks you to open a page at sign.example: Sign here."
                assert person.asked[1].url == "https://sign.example/x?y=1"
                hidden = await client.call_tool("up_open", {"uri": "https://bank.example@evil.example/"})
                assert "only a page at an https address can be opened" in json.dumps(told(hidden))
                sampled = await client.call_tool("up_sample")
                assert "sampling" in json.dumps(told(sampled)) or text(sampled)[1] == -32601
                assert len(person.asked) == 2
            async with at(grove, era, Person(declines)) as client:
                assert text(await client.call_tool("up_ask"))[2:] == ["decline", None]
            async with at(grove, era, person, asks=False) as client:
                refused = json.dumps(told(await client.call_tool("up_ask")))
                assert "the client of this call cannot be asked" in refused
            assert "cannot be asked" in json.dumps(await (await grove.agent("all")).call("up_ask"))


@pytest.mark.parametrize("protocol", ["modern", "legacy"])
async def test_without_the_switch_nothing_is_announced_and_nobody_is_asked(protocol: str, tmp_path: Path) -> None:
    with newsroom("stdio", protocol, tmp_path / "journal") as servers:
        async with project(servers, all=ALL) as grove:
            person = Person(accepts)
            async with at(grove, "auto", person) as client:
                result = await client.call_tool("up_ask")
                if protocol == "legacy":
                    assert text(result) == [[], -32601, "Method not found"]
                else:
                    assert told(result)["error"]["reason"] == "input_required"
                assert person.asked == []


async def test_where_several_calls_are_under_way_a_question_of_the_older_era_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    with newsroom("stdio", "legacy", journal.path) as servers:
        async with project(with_questions(servers), all=ALL) as grove:
            person = Person(accepts)
            async with at(grove, "auto", person) as client, anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "up_hang")
                await eventually(lambda: journal.of("hanging"))
                assert "nothing says which of them asks" in text(await client.call_tool("up_ask"))[2]
                tasks.cancel_scope.cancel()
            assert person.asked == []


@WAYS
async def test_the_log_of_a_server_goes_to_ours_and_to_the_client_that_wants_it(
    transport: str, protocol: str, era: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "toolgrove.pool")
    journal = Journal(tmp_path / "journal")
    with newsroom(transport, protocol, journal.path) as servers:
        entry = {
            **servers["up"],
            **({"env": {"KEY": SECRET}} if transport == "stdio" else {"headers": {"x-api-key": SECRET}}),
        }
        async with project({"up": entry}, all=ALL) as grove:
            person = Person(accepts)
            async with at(grove, era, person) as client:
                assert client.server_capabilities.logging is not None
                if era == "legacy":
                    await client.session.send_request(
                        types.SetLevelRequest(params=types.SetLevelRequestParams(level="error")), types.EmptyResult
                    )
                    await client.call_tool("up_speak", {"text": SECRET})
                    levels: Any = {}
                else:
                    await client.call_tool("up_speak", {"text": "unheard"})
                    levels = {"meta": {"io.modelcontextprotocol/logLevel": "error"}}
                    await client.call_tool("up_speak", {"text": SECRET}, **levels)
                await eventually(lambda: person.heard)
                (heard,) = person.heard
                assert (heard[0], heard[2]) == ("error", "up/desk")
                assert heard[1].startswith("error ")
                assert SECRET not in heard[1]
            assert dict(grove.pool.messages())["up", "error"] >= 1
            state = grove.pool.latest.sources["up"]
            assert state.instructions.startswith("Call touch first. The key is ")
            assert SECRET not in state.instructions
            assert (journal.of("level") == [["error"]]) == (protocol == "legacy")
        assert "server up: [error] error " in caplog.text
        assert SECRET not in caplog.text


def in_session(method: str, params: Json) -> Asked:
    body = json.dumps(request(LEGACY, method, params)).encode()
    return Asked(with_length(head_of(LEGACY), body), body)


async def test_on_the_lane_an_answer_becomes_a_stream_once_the_server_logs(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    with newsroom("stdio", "legacy", journal.path) as servers:
        async with project(servers, all=ALL) as grove:
            transport = StreamableHTTP(mcp_endpoint(await grove.agent("all"), "1"))
            async with transport.running():
                client = Twin(Lane(Starlette(routes=transport.routes), transport.line), "")
                await client.greet("/mcp")
                silent = await client.ask(
                    in_session("tools/call", {"name": "up_touch", "arguments": {"uri": "memo://x"}})
                )
                assert silent.headers[b"content-type"] == b"application/json"
                assert silent.body["result"]["content"][0]["text"] == "done"
                speaks = in_session("tools/call", {"name": "up_speak", "arguments": {"text": "hello"}})
                spoken = await client.ask(speaks)
                assert spoken.headers[b"content-type"] == b"text/event-stream"
                *logged, answer = spoken.body
                assert [one["method"] for one in logged] == ["notifications/message"] * 2
                assert [one["params"] for one in logged] == [
                    {"level": level, "logger": "up/desk", "data": f"{level} hello"} for level in ("info", "error")
                ]
                assert answer["result"]["content"] == silent.body["result"]["content"]
                await client.ask(in_session("logging/setLevel", {"level": "emergency"}))
                assert (await client.ask(speaks)).headers[b"content-type"] == b"application/json"
                wants = in_session("tools/call", {**json.loads(speaks.body)["params"], "_meta": {"progressToken": 7}})
                assert (await client.ask(wants)).headers[b"content-type"].startswith(b"text/event-stream")
                assert journal.of("wants progress") == [[False], [False], [True]]

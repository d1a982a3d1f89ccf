"""An OpenAI-compatible endpoint on the loopback: real HTTP, with every answer under the test's control."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from runners.brain import Brain, Say, Turn
from toolgrove.tools import DECLARATIONS


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What goes back. `held` keeps it back for good; `announced` is the length it claims to have; `dripping` sends
    a byte now and then and never ends.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    held: bool = False
    announced: int | None = None
    dripping: bool = False


@dataclass(kw_only=True)
class Request:
    """What came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass(kw_only=True)
class Endpoint:
    """Where it listens, what it was asked, and whether somebody hung up on an answer that was held back."""

    url: str
    requests: list[Request] = field(default_factory=list)
    waiting: anyio.Event = field(default_factory=anyio.Event)
    abandoned: anyio.Event = field(default_factory=anyio.Event)


Answer = Callable[[dict[str, Any]], Reply]
_ids = count(1)


def choice(message: dict[str, Any], finish_reason: str | None = "stop") -> Reply:
    """A completion with one choice."""
    answer = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", **message}}
    return Reply(body=json.dumps({"id": "x", "object": "chat.completion", "choices": [answer]}).encode())


def streamed(*pieces: dict[str, Any] | str, done: bool = True) -> Reply:
    """A completion in pieces, as server-sent events; a text goes as it is."""
    lines = [piece if isinstance(piece, str) else f"data: {json.dumps(piece)}\n\n" for piece in pieces]
    body = "".join([*lines, *(["data: [DONE]\n\n"] if done else [])])
    return Reply(body=body.encode(), headers={"Content-Type": "text/event-stream; charset=utf-8"})


def say(text: str) -> Reply:
    return choice({"content": text})


def tool_call(name: str, arguments: Any) -> dict[str, Any]:
    """A call as the wire has it; arguments that are text already go as they are."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": f"call_{next(_ids)}", "type": "function", "function": {"name": name, "arguments": text}}


def ask(*calls: tuple[str, Any]) -> Reply:
    return choice({"content": None, "tool_calls": [tool_call(*call) for call in calls]}, "tool_calls")


def thinking(brain: Brain) -> Answer:
    """Answers as the brain does."""

    def answer(request: dict[str, Any]) -> Reply:
        system, task, *rest = request["messages"]
        thought = brain(
            Turn(
                system=system["content"],
                tools=tuple(tool["function"]["name"] for tool in request.get("tools", ())),
                task=task["content"],
                results=tuple(json.loads(message["content"]) for message in rest if message["role"] == "tool"),
            )
        )
        return say(thought.text) if isinstance(thought, Say) else ask(*thought)

    return answer


def obeying(request: dict[str, Any]) -> Reply:
    """Looks at the root, makes the call that its task names with that version, and repeats the answer."""
    asked, (task,) = [
        [json.loads(one["content"]) for one in request["messages"] if one["role"] == role] for role in ("tool", "user")
    ]
    if not asked:
        return ask(("get_node", {"nodeId": "root"}))
    if len(asked) == 2:
        return say(json.dumps(asked[1]))
    name, arguments = task
    if name in DECLARATIONS and DECLARATIONS[name].mutates:
        arguments["versionToken"] = asked[0].get("version", "")
    return ask((name, arguments))


def scripted(*replies: Reply) -> Answer:
    """Gives these one after the other."""
    left = iter(replies)
    return lambda request: next(left)


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[Endpoint]:
    """Run the endpoint while the test does."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
        port = listener.extra(SocketAttribute.local_port)
        endpoint = Endpoint(url=f"http://127.0.0.1:{port}/v1")

        async def converse(stream: SocketStream) -> None:
            async with stream:
                with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
                    await _converse(endpoint, answer, stream)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, converse)
            yield endpoint
            tasks.cancel_scope.cancel()


async def _converse(endpoint: Endpoint, answer: Answer, stream: SocketStream) -> None:
    incoming = BufferedByteReceiveStream(stream)
    head = (await incoming.receive_until(b"\r\n\r\n", 65_536)).decode()
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await incoming.receive_exactly(int(headers["content-length"]))
    request = Request(path=first.split()[1], headers=headers, body=json.loads(body))
    endpoint.requests.append(request)
    reply = answer(request.body)
    if reply.held:
        endpoint.waiting.set()
        try:
            await incoming.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            endpoint.abandoned.set()
        return
    fields = {
        "Content-Type": "application/json",
        "Connection": "close",
        "Content-Length": str(len(reply.body) if reply.announced is None else reply.announced),
        **reply.headers,
    }
    lines = [f"HTTP/1.1 {reply.status} Status", *(f"{name}: {value}" for name, value in fields.items())]
    await stream.send("\r\n".join([*lines, "", ""]).encode() + reply.body)
    while reply.dripping:
        await anyio.sleep(0.01)  # the pace of the fault, not a wait for anything
        await stream.send(b" ")

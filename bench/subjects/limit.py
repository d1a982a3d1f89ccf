"""What no server here can beat: a Starlette endpoint, a line reader and a stream, all answering the same bytes."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from apcore import Registry
from mcp.shared.message import SessionMessage
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bench.subjects.sdk import WAITING, tools_of, unwrap, wrap

_SUM = (
    b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"{\\"sum\\": %d}"}],'
    b'"structuredContent":{"sum":%d},"isError":false,"resultType":"complete"}}'
)


class Answers:
    """The bytes to answer a question with."""

    def __init__(self, registry: Registry) -> None:
        listed = types.ListToolsResult(tools=tools_of(registry)).model_dump_json(by_alias=True, exclude_none=True)
        self._listed = b',"result":' + listed.encode() + b"}"

    def __call__(self, asked: dict[str, Any]) -> bytes:
        if asked["method"] == "tools/list":
            return b'{"jsonrpc":"2.0","id":%d' % asked["id"] + self._listed
        total = sum(asked["params"]["arguments"].values())
        return _SUM % (asked["id"], total, total)


def http(registry: Registry, port: int) -> None:
    answers = Answers(registry)

    async def answer(request: Request) -> Response:
        return Response(answers(json.loads(await request.body())), media_type="application/json")

    app = Starlette(routes=[Route("/mcp", answer, methods=["POST"])])
    uvicorn.run(app, port=port, log_config=None, access_log=False, http="h11", loop="asyncio")


def stdio(registry: Registry) -> None:
    answers, out = Answers(registry), sys.stdout.buffer
    for line in sys.stdin.buffer:
        out.write(answers(json.loads(line)) + b"\n")
        out.flush()


@asynccontextmanager
async def memory(registry: Registry) -> AsyncIterator[Any]:
    reply = Answers(registry)
    questions, read = anyio.create_memory_object_stream[Any](WAITING)
    write, answers = anyio.create_memory_object_stream[Any](WAITING)

    async def serve() -> None:
        async for asked in read:
            message = json.loads(reply(asked.message.model_dump()))
            await write.send(SessionMessage(types.JSONRPCResponse.model_validate(message)))

    async with read, write, anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        yield questions.send, answers.receive, wrap, unwrap
        tasks.cancel_scope.cancel()

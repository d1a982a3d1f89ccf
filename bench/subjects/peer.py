"""`apcore-mcp` from PyPI, as it ships."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from apcore import Executor, Registry
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage

from apcore_mcp import APCoreMCP, ExecutionRouter, MCPServerFactory, serve

WAITING = 64
build_tools = MCPServerFactory().build_tools


def http(registry: Registry, port: int) -> None:
    serve(registry, transport="streamable-http", port=port)


def stdio(registry: Registry) -> None:
    serve(registry, transport="stdio")


@asynccontextmanager
async def memory(registry: Registry) -> AsyncIterator[Any]:
    server, _, _, options, _ = APCoreMCP(registry)._build_server_components()
    questions, read = anyio.create_memory_object_stream[Any](WAITING)
    write, answers = anyio.create_memory_object_stream[Any](WAITING)
    async with read, write, anyio.create_task_group() as tasks:
        tasks.start_soon(server.run, read, write, options)
        yield questions.send, answers.receive, wrap, unwrap
        tasks.cancel_scope.cancel()


def wrap(message: dict[str, Any]) -> Any:
    model: Any = JSONRPCMessage
    return SessionMessage(model.model_validate(message))


def unwrap(received: Any) -> dict[str, Any]:
    plain: dict[str, Any] = received.message.root.model_dump(by_alias=True, mode="json", exclude_none=True)
    return plain


def handler(executor: Executor) -> Callable[[str, dict[str, Any]], Awaitable[Any]]:
    router: Any = ExecutionRouter(executor)

    async def handle(name: str, arguments: dict[str, Any]) -> Any:
        return await router.handle_call(name, arguments, extra={"session": None})

    return handle

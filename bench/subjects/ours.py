"""This bridge; with `bare`, without apcore's pipeline, so that only our own cost is left."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from apcore import Context, Executor, Registry

from apcore_mcp import serve
from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from apcore_mcp.server.factory import MCPServerFactory
from apcore_mcp.server.listener import RegistryListener
from apcore_mcp.server.router import ExecutionRouter
from bench.subjects.sdk import connected
from mcp_serve.calls import Channel, ToolRun

build_tools = MCPServerFactory().build_tools


class Direct(Executor):
    """Runs the module and nothing else."""

    async def call_async(
        self,
        module_id: str,
        inputs: dict[str, Any] | None = None,
        context: Context[Any] | None = None,
        version_hint: str | None = None,
    ) -> dict[str, Any]:
        result: dict[str, Any] = await self.registry.get(module_id).execute(inputs, context)
        return result


def _source(registry: Registry, bare: bool) -> Registry | Executor:
    return Direct(registry) if bare else registry


def http(registry: Registry, port: int, *, bare: bool = False) -> None:
    serve(_source(registry, bare), transport="streamable-http", port=port)


def stdio(registry: Registry, *, bare: bool = False) -> None:
    serve(_source(registry, bare), transport="stdio")


@asynccontextmanager
async def memory(registry: Registry, *, bare: bool = False) -> AsyncIterator[Any]:
    bridge = Bridge(_source(registry, bare), Options())
    async with bridge.running(), connected(bridge.endpoint.server) as streams:
        yield streams


def handler(executor: Executor) -> Callable[[str, dict[str, Any]], Awaitable[Any]]:
    """The router as the server uses it: with a tool table and a caller."""
    tools = RegistryListener()
    tools.start(executor.registry)
    router = ExecutionRouter(executor, lookup=tools.entry)

    async def handle(name: str, arguments: dict[str, Any]) -> Any:
        return await router.handle_call(name, arguments, ToolRun(None, Channel(), lambda run: None))

    return handle

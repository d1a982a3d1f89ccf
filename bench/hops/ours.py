"""An agent of a project that has the upstream's tools, served through the bridge."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Route

from bench.hop import ROOT, STDIO, child
from bench.hops.profile import Profile
from bench.wire import MODERN
from mcp_serve.clear_json import ClearJson
from mcp_serve.endpoint import Endpoint
from mcp_serve.guard import Guard, Hosts
from mcp_serve.http import StreamableHTTP
from mcp_serve.http_server import run_http
from mcp_serve.signals import Stop
from mcp_serve.stdio import run_stdio
from toolgrove import Config, Grove
from toolgrove.cli.serve import listen
from toolgrove.mcp_face import mcp_endpoint

SERVER = "up"


@asynccontextmanager
async def endpoint_over(era: str, upstream: str) -> AsyncIterator[Endpoint]:
    server: dict[str, Any] = {"url": upstream}
    if upstream == STDIO:
        program, *args = child(era)
        server = {"command": program, "args": args, "cwd": str(ROOT)}
    server["protocol"] = "modern" if era == MODERN else "legacy"
    agents = {"bench": {"role": "editor", "tools": [f"{SERVER}_*"]}}
    config = Config.model_validate({"mcpServers": {SERVER: server}, "agents": agents, "startupBudget": 30})
    async with Grove(config) as grove:
        agent = await grove.agent("bench")
        if not agent.tools:
            raise RuntimeError(f"the upstream is not there: {agent.receipt.sources[SERVER].problem}")
        yield mcp_endpoint(agent, "1")


def http(port: str, era: str, upstream: str) -> None:
    async def run() -> None:
        async with endpoint_over(era, upstream) as endpoint:
            transport = StreamableHTTP(endpoint)
            async with transport.running():
                app = ClearJson(Starlette(routes=[*transport.routes, Route("/profile", Profile())]))
                with listen("127.0.0.1", int(port)) as listening:
                    await run_http(Guard(app, Hosts("127.0.0.1")), endpoint.drain, listening, Stop())

    asyncio.run(run())


def stdio(era: str, upstream: str) -> None:
    async def run() -> None:
        async with endpoint_over(era, upstream) as endpoint:
            await run_stdio(endpoint, Stop())

    asyncio.run(run())

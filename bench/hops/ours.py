"""An agent of a project that has the upstream's tools, served through the bridge."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Route

from apcore_mcp.server.endpoint import Endpoint
from apcore_mcp.server.http import Guard, StreamableHTTP
from apcore_mcp.server.transport import run_http, run_stdio
from bench.hop import ROOT, STDIO, child
from bench.hops.profile import Profile
from bench.wire import MODERN
from toolgrove import Config, Grove
from toolgrove.cli.serve import listen
from toolgrove.faces import mcp_endpoint

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
        endpoint = mcp_endpoint(agent, "1")
        endpoint.loop = asyncio.get_running_loop()
        yield endpoint


def http(port: str, era: str, upstream: str) -> None:
    async def run() -> None:
        async with endpoint_over(era, upstream) as endpoint:
            transport = StreamableHTTP(endpoint)
            async with transport.running():
                app = Guard(Starlette(routes=[*transport.routes, Route("/profile", Profile())]), "127.0.0.1", None)
                with listen("127.0.0.1", int(port)) as listening:
                    await run_http(app, endpoint.drain, listening, asyncio.Event())

    asyncio.run(run())


def stdio(era: str, upstream: str) -> None:
    async def run() -> None:
        async with endpoint_over(era, upstream) as endpoint:
            await run_stdio(endpoint, asyncio.Event())

    asyncio.run(run())

"""The gateway with a profiler in it, over a project that `toolgrove serve` has given tokens to before."""

import asyncio
import contextlib

from starlette.routing import Route

from bench.hops.profile import Profile
from mcp_serve.http_server import run_http
from mcp_serve.signals import Stop
from toolgrove import Config, Grove
from toolgrove.cli.serve import listen


def http(port: str, era: str, file: str) -> None:
    async def run() -> None:
        async with Grove(Config.load(file)) as grove:
            gateway = grove.gateway()
            app = gateway.app
            app.router.routes.insert(0, Route("/profile", Profile()))
            async with app.router.lifespan_context(app):
                with listen("127.0.0.1", int(port)) as listening:
                    await run_http(app, gateway.drain, listening, Stop(), enter=gateway.enter)

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())

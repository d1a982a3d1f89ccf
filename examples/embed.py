"""The bridge inside a Starlette app of your own: your pages at /, MCP at /tools/mcp."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from apcore_mcp import create_app
from quickstart import registry

bridge = create_app(registry, name="embedded", explorer=True)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with bridge.router.lifespan_context(bridge):  # a mounted app's lifespan is not entered by itself
        yield


async def home(request: Request) -> PlainTextResponse:
    return PlainTextResponse("MCP is at /tools/mcp, the Explorer at /tools/explorer/")


app = Starlette(routes=[Route("/", home), Mount("/tools", app=bridge)], lifespan=lifespan)

if __name__ == "__main__":
    uvicorn.run(app)

"""Plain uvicorn with a Starlette app whose answer costs as much CPU as it is told: `GET /burn?method=M&us=N`."""

import time

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


def http(port: str, era: str, kind: str) -> None:
    burnt: dict[str, float] = {}

    async def burn(request: Request) -> Response:
        burnt[request.query_params["method"]] = int(request.query_params["us"]) / 1e6
        return JSONResponse(burnt)

    async def answer(request: Request) -> Response:
        asked = await request.json()
        end = time.thread_time() + burnt.get(asked["method"], 0)
        while time.thread_time() < end:
            pass
        return JSONResponse({"jsonrpc": "2.0", "id": asked.get("id"), "result": {"content": []}})

    app = Starlette(routes=[Route("/burn", burn), Route("/mcp", answer, methods=["POST"])])
    uvicorn.run(app, port=int(port), log_config=None, access_log=False, backlog=2048, loop="asyncio")

"""A bare SDK server: as its documentation shows it, or `lean`, which answers in plain JSON and traces nothing.

`GET /count` tells how many requests it got.
"""

import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from bench.hop import TOOLS
from bench.modules import registry_of_size
from bench.subjects import sdk


class Counted:
    """Counts the requests to an app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._count = app, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/count":
            await JSONResponse(self._count)(scope, receive, send)
            return
        self._count += scope["type"] == "http"
        await self._app(scope, receive, send)


def http(port: str, era: str, kind: str) -> None:
    server = sdk.server_of(registry_of_size(TOOLS), lean=kind != "default")
    app = Counted(server.streamable_http_app(json_response=kind != "default"))
    uvicorn.run(
        app,
        port=int(port),
        log_config=None,
        access_log=False,
        http="httptools" if kind == "quick" else "h11",
        loop="asyncio",
    )


def stdio(era: str, kind: str) -> None:
    sdk.stdio(registry_of_size(TOOLS), lean=kind != "default")

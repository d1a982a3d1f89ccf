"""Refuses JSON that two readers could read differently, and reads the rest once for everything behind it."""

import json
from typing import Any, NoReturn

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_serve.guard import refuse
from mcp_serve.replay import replay

BODY = "mcp_serve.body"
"""Where the scope of a request holds the JSON body that was read."""
BAD_JSON = "Parse error: the body must be one JSON text, moderately nested, with no key given twice"


class ClearJson:
    """Reads and checks the body, so it stands behind everything that can refuse a request by its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and _says_json(scope["headers"]):
            try:
                body = await Request(scope, receive).body()
                _STRICT.decode(body.decode())
            except (ValueError, RecursionError, ClientDisconnect):
                await refuse(400, BAD_JSON, code=-32700)(scope, receive, send)
                return
            scope[BODY] = body
            receive = replay([{"type": "http.request", "body": body}], receive)
        await self._app(scope, receive, send)


def _says_json(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(b"json" in value.lower() for key, value in headers if key == b"content-type")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is given twice")
    return members


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)

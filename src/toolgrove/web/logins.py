"""Logins to MCP servers from the console: the operator begins one, and the browser comes back here with the answer."""

from __future__ import annotations

import html
import logging

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from toolgrove.errors import GroveError
from toolgrove.web import schemas
from toolgrove.web.http_json import HEADERS
from toolgrove.web.open_addresses import CALLBACK
from toolgrove.web.project import Project
from toolgrove.web.routing import Handlers

log = logging.getLogger("toolgrove.serve")
_HEADERS = {**HEADERS, "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}


class LoginPages:
    """What the operator asks for, and the page that a browser comes back to; neither ever shows a token."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def handlers(self) -> Handlers:
        """What answers each of the two operations."""
        return {"begin_login": self._begin, "login_answer": self._answer}

    async def _begin(self, request: Request) -> schemas.LoginQuestion:
        # The guard has checked both: they name us. A browser says in its origin how it reaches us, also through TLS.
        origin = request.headers.get("origin") or f"http://{request.headers['host']}"
        back = f"{origin}{_root(request)}{CALLBACK}"
        address = await self._project.server_logins.begin(request.path_params["server"], back)
        return schemas.LoginQuestion(address=address)

    async def _answer(self, request: Request) -> Response:
        """Take the answer of an authorization server; only who began the login knows its state."""
        if request.method != "GET":  # whoever only looks must not use it up
            return Response(status_code=405, headers={**_HEADERS, "Allow": "GET"})
        given: dict[str, list[str]] = {}
        for name, value in request.query_params.multi_items():
            given.setdefault(name, []).append(value)
        try:
            server = await self._project.server_logins.finish(given, by="operator")
        except (GroveError, OSError) as error:
            said = error.message if isinstance(error, GroveError) else "The login cannot be kept; the log says why."
            log.warning("A login from the console did not succeed: %s", error)
            return HTMLResponse(_page(f"The login did not succeed. {said}", _root(request)), 400, headers=_HEADERS)
        log.info("Logged in to server %s from the console.", server)
        return RedirectResponse(
            f"{_root(request)}/console", 303, headers=_HEADERS
        )  # so that the code leaves the address


def _root(request: Request) -> str:
    """Where the project is, if it is one of several."""
    root: str = request.scope.get("root_path", "")
    return root


def _page(text: str, root: str) -> str:
    said = html.escape(text)
    way = f'<p><a href="{html.escape(root)}/console">Back to the console</a></p>'
    return f"<!doctype html><html lang=en><meta charset=utf-8><title>Toolgrove</title><p>{said}</p>{way}"

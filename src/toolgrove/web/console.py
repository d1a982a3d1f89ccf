"""The console's page: one file without a secret in it; what it shows it asks for with the operator's token."""

from __future__ import annotations

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from toolgrove.web.http_json import HEADERS
from toolgrove.web.routing import Handlers


def console_handlers() -> Handlers:
    """The page, read once, and the way to it."""
    html, policy = (files(__package__).joinpath(f"console.{kind}").read_text("utf-8") for kind in ("html", "csp"))
    page = HTMLResponse(html, headers={**HEADERS, "Content-Security-Policy": policy.strip()})

    async def show(request: Request) -> Response:
        return page

    async def home(request: Request) -> Response:
        return RedirectResponse(f"{request.scope.get('root_path', '')}/console")

    return {"console": show, "console_folder": show, "home": home}

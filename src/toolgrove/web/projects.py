"""Several projects at one address: each is under `/p/NAME` as if it were alone; nothing else is shared."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from html import escape
from typing import Any
from urllib.parse import quote

from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_serve.guard import Guard, Hosts
from mcp_serve.plain import Head
from mcp_serve.shortcut import Enter, Entry
from toolgrove.web.http_json import HEADERS, answer, problem

PREFIX = "/p/"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def index_of(apps: Mapping[str, ASGIApp], host: str, allowed_hosts: Collection[str]) -> ASGIApp:
    """The app of all of them. Each guards its own paths; the few that are common are guarded here."""
    common = Guard(_Common(apps), Hosts(host, allowed_hosts), open_paths=("/health", "/ready"))
    return Projects(apps, common)


def entrance_of(projects: Mapping[str, Enter]) -> Enter:
    """Lets plain requests in to the project that their path names, by its own rules."""

    def enter(path: str, head: Head, source: str) -> Entry | None:
        name, _, rest = path.removeprefix(PREFIX).partition("/")
        project = projects.get(name) if path.startswith(PREFIX) else None
        return None if project is None else project(f"/{rest}", head, source)

    return enter


class Projects:
    """Hands a request on to the project that its path names."""

    def __init__(self, apps: Mapping[str, ASGIApp], common: ASGIApp) -> None:
        self._apps, self._common = apps, common

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope.get("path", "")
        name, slash, rest = path.removeprefix(PREFIX).partition("/")
        app = self._apps.get(name) if path.startswith(PREFIX) else None
        if app is None or not slash:
            await self._common(scope, receive, send)
            return
        prefix = f"{PREFIX}{quote(name, safe='')}"
        inner = {**scope, "path": f"/{rest}", "root_path": prefix, "raw_path": _raw(scope, rest)}
        await app(inner, receive, send)


def _raw(scope: Scope, rest: str) -> bytes:
    """The path as it was written, without the project's part; the third slash begins what is left."""
    given: bytes = scope.get("raw_path") or b""
    parts = given.split(b"/", 3)
    return b"/" + parts[3] if len(parts) == 4 else f"/{rest}".encode()


class _Common:
    """What is about all of them: an index without secrets, and whether all live and are ready."""

    def __init__(self, apps: Mapping[str, ASGIApp]) -> None:
        self._apps = apps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await (await self._answer(scope))(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response:
        path = scope["path"]
        if path == "/":
            return self._index()
        if path in ("/health", "/ready"):
            return await self._asked(path, scope)
        if (name := path.removeprefix(PREFIX)) in self._apps:
            return RedirectResponse(f"{PREFIX}{quote(name, safe='')}/console", headers=HEADERS)
        return problem(404, "not_found", "There is no such project here. The index at / names those that there are.")

    def _index(self) -> Response:
        links = "".join(
            f'<li><a href="{PREFIX}{quote(name, safe="")}/console">{escape(name)}</a></li>' for name in self._apps
        )
        page = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>Toolgrove</title>'
            "<style>body{font:16px/1.5 system-ui;margin:3rem auto;max-width:40rem;padding:0 1rem;"
            "color-scheme:light dark}</style>"
            f"<h1>Toolgrove</h1><p>Projects on this gateway:</p><ul>{links}</ul></html>"
        )
        return HTMLResponse(page, headers={**HEADERS, "Content-Security-Policy": _POLICY})

    async def _asked(self, path: str, scope: Scope) -> Response:
        """What every project says; the status is the worst of theirs."""
        statuses = {name: await _status(app, path, scope) for name, app in self._apps.items()}
        words: dict[str, Any] = {name: "ok" if status == 200 else "not ok" for name, status in statuses.items()}
        return answer(
            {"status": "ok" if set(statuses.values()) == {200} else "not ok", "projects": words}, max(statuses.values())
        )


async def _status(app: ASGIApp, path: str, scope: Scope) -> int:
    found: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            found.append(message["status"])

    await app({**scope, "path": path}, receive, send)
    return found[0]

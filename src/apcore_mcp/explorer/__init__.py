"""The Explorer: a page on which people browse, read and try the tools."""

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from typing import Any

import mcp_types as types
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from apcore_mcp.adapters.annotations import AnnotationMapper
from apcore_mcp.options import Options
from apcore_mcp.server.calls import Channel, Question
from apcore_mcp.server.endpoint import Endpoint, ToolTable, accepted
from apcore_mcp.server.factory import Entry

Outcome = types.CallToolResult | Question
_PLAIN = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_INPUT_FAULTS = ("Input validation failed", "Invalid input")


class Explorer:
    """The page and the JSON it lives on; running tools is off unless the operator allows it."""

    def __init__(self, tools: ToolTable, endpoint: Endpoint, options: Options) -> None:
        self._tools = tools
        self._endpoint = endpoint
        self._options = options
        self._annotations = AnnotationMapper()
        html = files(__package__).joinpath("explorer.html").read_text(encoding="utf-8")
        self._page = HTMLResponse(html, headers=_page_headers(html))

    def routes(self) -> list[BaseRoute]:
        prefix = self._options.explorer_prefix
        return [
            Route(prefix, lambda request: RedirectResponse(f"{prefix}/")),
            Route(f"{prefix}/", self.page),
            Route(f"{prefix}/info", self.info),
            Route(f"{prefix}/tools", self.list_tools),
            Route(f"{prefix}/tools/{{name}}", self.tool),
            Route(f"{prefix}/tools/{{name}}/call", self.call, methods=["POST"]),
            Route(f"{prefix}/calls/{{id}}", self.answer, methods=["POST"]),
            Route(f"{prefix}/events", self.events),
        ]

    async def page(self, request: Request) -> Response:
        return self._page

    async def info(self, request: Request) -> Response:
        server, transport = self._endpoint.server, self._options.transport
        return _json(
            {
                "name": server.name,
                "version": server.version,
                "transport": "sse" if transport == "sse" else "streamable-http",
                "mcpPath": "/sse" if transport == "sse" else "/mcp",
                "allowExecute": self._options.allow_execute,
            }
        )

    async def list_tools(self, request: Request) -> Response:
        return _json([self._summary(entry) for entry in self._tools.entries().values()])

    async def tool(self, request: Request) -> Response:
        entry = self._tools.entry(request.path_params["name"])
        if entry is None:
            return _not_found(request)
        tool, descriptor = entry.tool, entry.descriptor
        detail = {
            "inputSchema": tool.input_schema,
            "outputSchema": tool.output_schema,
            "documentation": descriptor.documentation,
            "examples": [vars(example) for example in descriptor.examples or ()],
        }
        return _json(self._summary(entry) | detail)

    def _summary(self, entry: Entry) -> dict[str, Any]:
        annotations = entry.descriptor.annotations
        hints = self._annotations.to_mcp_annotations(annotations)
        return {
            "name": entry.tool.name,
            "description": entry.tool.description,
            "annotations": hints.model_dump(by_alias=True, exclude_none=True),
            "tags": list(entry.descriptor.tags or ()),
            "requiresApproval": self._annotations.has_requires_approval(annotations),
            "streaming": bool(getattr(annotations, "streaming", False)),
        }

    async def call(self, request: Request) -> Response:
        name = request.path_params["name"]
        if refusal := self._refusal(request):
            return refusal
        if self._tools.entry(name) is None:
            return _not_found(request)
        arguments = await request.json()
        return await _answer(request, lambda channel: self._endpoint.calls.begin(name, arguments, channel))

    async def answer(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        answer = accepted(types.ElicitResult.model_validate(await request.json()))
        question = request.path_params["id"]
        return await _answer(request, lambda channel: self._endpoint.calls.resume(question, answer, channel))

    def _refusal(self, request: Request) -> Response | None:
        if not self._options.allow_execute:
            return _json({"error": "Tool execution is disabled"}, 403)
        origin = request.headers.get("origin", request.headers["host"])
        if origin.rpartition("/")[2] != request.headers["host"]:
            return _json({"error": "Tools run only from the Explorer's own page"}, 403)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _json({"error": "Content-Type must be application/json"}, 415)
        return None

    async def events(self, request: Request) -> Response:
        return _stream(self._changes())

    async def _changes(self) -> AsyncIterator[bytes]:
        changed = asyncio.Event()
        unsubscribe = self._endpoint.bus.subscribe(lambda _: changed.set())
        try:
            yield b": connected\n\n"
            while await changed.wait():
                changed.clear()
                yield _event("changed", {})
        finally:
            unsubscribe()


async def _answer(request: Request, run: Callable[[Channel], Awaitable[Outcome]]) -> Response:
    if "text/event-stream" in request.headers.get("accept", ""):
        return _stream(_progress_and_outcome(run))
    _, content = _outcome(await run(Channel()))
    return _json(content, content.pop("status", 200))


async def _progress_and_outcome(run: Callable[[Channel], Awaitable[Outcome]]) -> AsyncIterator[bytes]:
    events: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def send(progress: float, total: float | None, message: str | None) -> None:
        events.put_nowait(_event("progress", {"progress": progress, "total": total, "message": message}))

    task = asyncio.ensure_future(run(Channel(send_progress=send, wants_chunks=True, can_answer=True)))
    task.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        yield _event(*_outcome(task.result()))
    finally:
        task.cancel()  # a page that closed the stream has cancelled the call


def _outcome(outcome: Outcome) -> tuple[str, dict[str, Any]]:
    if isinstance(outcome, Question):
        return "question", {"id": outcome.id, "message": outcome.message, "schema": outcome.schema}
    text = "".join(block.text for block in outcome.content if isinstance(block, types.TextContent))
    if outcome.is_error:
        return "error", {"error": text, "status": 400 if text.startswith(_INPUT_FAULTS) else 500}
    return "result", {"result": json.loads(text)}


def _event(name: str, content: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(content)}\n\n".encode()


def _stream(events: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(events, media_type="text/event-stream", headers=_PLAIN)


def _json(content: Any, status: int = 200) -> Response:
    return JSONResponse(content, status, headers=_PLAIN)


def _not_found(request: Request) -> Response:
    return _json({"error": f"Tool '{request.path_params['name']}' not found"}, 404)


def _page_headers(html: str) -> dict[str, str]:
    """A policy under which only the page's own script and style, known by their hashes, are used."""
    sources = {
        tag: " ".join(f"'sha256-{_digest(text)}'" for text in re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", html, re.S))
        for tag in ("script", "style")
    }
    policy = (
        f"default-src 'none'; script-src {sources['script']}; style-src {sources['style']}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {**_PLAIN, "Content-Security-Policy": policy, "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"}


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

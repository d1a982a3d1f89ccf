"""The Explorer: a page on which people browse, read and try the tools."""

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from typing import Any

from mcp_types import CallToolResult, ElicitResult
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from apcore_mcp.adapters.annotations import AnnotationMapper
from apcore_mcp.options import Options
from apcore_mcp.server.calls import Channel, Question
from apcore_mcp.server.endpoint import Endpoint, ToolTable, accepted
from apcore_mcp.server.factory import Entry

Run = Callable[[Channel], Awaitable[CallToolResult | Question]]
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_INPUT_FAULTS = ("Input validation failed", "Invalid input")


class Explorer:
    """The page and the JSON it lives on; running tools is off unless the operator allows it."""

    def __init__(self, tools: ToolTable, endpoint: Endpoint, options: Options) -> None:
        self._tools, self._endpoint, self._options = tools, endpoint, options
        html = files(__package__).joinpath("explorer.html").read_text(encoding="utf-8")
        self._page = HTMLResponse(html, headers=_HEADERS | {"Content-Security-Policy": _policy(html)})

    def routes(self) -> list[BaseRoute]:
        prefix = self._options.explorer_prefix
        return [
            Route(prefix, lambda request: RedirectResponse(f"{prefix}/")),
            Route(f"{prefix}/", lambda request: self._page),
            Route(f"{prefix}/info", lambda request: _json(self._info())),
            Route(f"{prefix}/tools", lambda request: _json([_summary(e) for e in self._tools.entries().values()])),
            Route(f"{prefix}/tools/{{name}}", self._tool),
            Route(f"{prefix}/tools/{{name}}/call", self._call, methods=["POST"]),
            Route(f"{prefix}/calls/{{id}}", self._resume, methods=["POST"]),
            Route(f"{prefix}/events", lambda request: _stream(self._changes())),
        ]

    def _info(self) -> dict[str, Any]:
        server, sse = self._endpoint.server, self._options.transport == "sse"
        place = {"transport": "sse", "mcpPath": "/sse"} if sse else {"transport": "streamable-http", "mcpPath": "/mcp"}
        return {"name": server.name, "version": server.version, "allowExecute": self._options.allow_execute, **place}

    async def _tool(self, request: Request) -> Response:
        entry = self._tools.entry(request.path_params["name"])
        if entry is None:
            return _not_found(request)
        schemas = {"inputSchema": entry.tool.input_schema, "outputSchema": entry.tool.output_schema}
        examples = [vars(example) for example in entry.descriptor.examples or ()]
        more = {"documentation": entry.descriptor.documentation, "examples": examples}
        return _json(_summary(entry) | schemas | more)

    async def _call(self, request: Request) -> Response:
        name = request.path_params["name"]
        refusal = self._refusal(request) or (None if self._tools.entry(name) else _not_found(request))
        if refusal is not None:
            return refusal
        arguments = await request.json()
        return await _answer(request, lambda channel: self._endpoint.calls.begin(name, arguments, channel))

    async def _resume(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        try:
            answer = accepted(ElicitResult.model_validate(await request.json()))
        except ValidationError:
            return _json({"error": "Answer with an action (accept, decline, cancel) and, to accept, a content"}, 400)
        question = request.path_params["id"]
        return await _answer(request, lambda channel: self._endpoint.calls.resume(question, answer, channel))

    def _refusal(self, request: Request) -> Response | None:
        host, kind = request.headers["host"], request.headers.get("content-type", "")
        if not self._options.allow_execute:
            return _json({"error": "Tool execution is disabled"}, 403)
        if request.headers.get("origin", host).rpartition("/")[2] != host:
            return _json({"error": "Tools run only from the Explorer's own page"}, 403)
        if kind.partition(";")[0].strip().lower() != "application/json":
            return _json({"error": "Content-Type must be application/json"}, 415)
        return None

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


def _summary(entry: Entry) -> dict[str, Any]:
    annotations, mapper = entry.descriptor.annotations, AnnotationMapper()
    return {
        "name": entry.tool.name,
        "description": entry.tool.description,
        "annotations": mapper.to_mcp_annotations(annotations).model_dump(by_alias=True, exclude_none=True),
        "tags": list(entry.descriptor.tags or ()),
        "requiresApproval": mapper.has_requires_approval(annotations),
        "streaming": bool(getattr(annotations, "streaming", False)),
    }


async def _answer(request: Request, run: Run) -> Response:
    if "text/event-stream" in request.headers.get("accept", ""):
        return _stream(_progress_and_outcome(run))
    _, content = _outcome(await run(Channel()))
    return _json(content, content.pop("status", 200))


async def _progress_and_outcome(run: Run) -> AsyncIterator[bytes]:
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


def _outcome(outcome: CallToolResult | Question) -> tuple[str, dict[str, Any]]:
    if isinstance(outcome, Question):
        return "question", vars(outcome)
    text = getattr(outcome.content[0], "text", "null")
    if outcome.is_error:
        return "error", {"error": text, "status": 400 if text.startswith(_INPUT_FAULTS) else 500}
    return "result", {"result": json.loads(text)}


def _event(name: str, content: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(content)}\n\n".encode()


def _stream(events: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(events, media_type="text/event-stream", headers=_HEADERS)


def _json(content: Any, status: int = 200) -> Response:
    return JSONResponse(content, status, headers=_HEADERS)


def _not_found(request: Request) -> Response:
    return _json({"error": f"Tool '{request.path_params['name']}' not found"}, 404)


def _policy(html: str) -> str:
    """Only the page's own script and style, known by their hashes, and only its own server."""
    own = {tag: _hash(re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", html, re.DOTALL)[0]) for tag in ("script", "style")}
    return (
        f"default-src 'none'; script-src {own['script']}; style-src {own['style']}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

"""The Explorer: a page on which people browse, read and try the tools; it runs them as any MCP client does."""

import json
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from apcore_mcp.adapters.annotations import AnnotationMapper
from apcore_mcp.options import Options
from apcore_mcp.server.calls import Channel
from apcore_mcp.server.endpoint import Endpoint, ToolTable
from apcore_mcp.server.factory import Entry
from apcore_mcp.server.http import unless_gone

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_INPUT_FAULTS = ("Input validation failed", "Invalid input")


class Explorer:
    """The page and the JSON it lives on; running tools is off unless the operator allows it."""

    def __init__(self, tools: ToolTable, endpoint: Endpoint, options: Options) -> None:
        self._tools, self._endpoint, self._options = tools, endpoint, options
        html, policy = (files(__package__).joinpath(f"explorer.{kind}").read_text("utf-8") for kind in ("html", "csp"))
        self._page = HTMLResponse(html, headers=_HEADERS | {"Content-Security-Policy": policy.strip()})

    def routes(self) -> list[BaseRoute]:
        prefix = self._options.explorer_prefix
        return [
            Route(prefix, lambda request: RedirectResponse(request.url.path + "/")),
            Route(f"{prefix}/", lambda request: self._page),
            Route(f"{prefix}/info", lambda request: _json(self._info())),
            Route(f"{prefix}/tools", lambda request: _json([_summary(e) for e in self._tools.entries().values()])),
            Route(f"{prefix}/tools/{{name}}", self._tool),
            Route(f"{prefix}/tools/{{name}}/call", self._call, methods=["POST"]),
        ]

    def _info(self) -> dict[str, Any]:
        server, options = self._endpoint.server, self._options
        mcp = None if options.transport == "sse" else "../" * options.explorer_prefix.count("/") + "mcp"
        return {"name": server.name, "version": server.version, "allowExecute": options.allow_execute, "mcpPath": mcp}

    async def _tool(self, request: Request) -> Response:
        if (entry := self._tools.entry(request.path_params["name"])) is None:
            return _not_found(request)
        detail: dict[str, Any] = {"inputSchema": entry.tool.input_schema, "outputSchema": entry.tool.output_schema}
        detail["examples"] = [vars(example) for example in entry.descriptor.examples or ()]
        return _json(_summary(entry) | detail | {"documentation": entry.descriptor.documentation})

    async def _call(self, request: Request) -> Response:
        name, host = request.path_params["name"], request.headers["host"]
        if not self._options.allow_execute:
            return _json({"error": "Tool execution is disabled"}, 403)
        if request.headers.get("origin", host).rpartition("/")[2] != host:
            return _json({"error": "Tools run only from the Explorer's own page"}, 403)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _json({"error": "Content-Type must be application/json"}, 415)
        if self._tools.entry(name) is None:
            return _not_found(request)
        call = self._endpoint.calls.begin(name, await request.json(), Channel())
        result: Any = await unless_gone(request.receive, call)
        text = result.content[0].text if result else "The client went away"
        if not result or result.is_error:
            return _json({"error": text}, 400 if text.startswith(_INPUT_FAULTS) else 500)
        return _json({"result": json.loads(text)})


def _summary(entry: Entry) -> dict[str, Any]:
    about, mapper = entry.descriptor, AnnotationMapper()
    hints = mapper.to_mcp_annotations(about.annotations).model_dump(by_alias=True, exclude_none=True)
    approval = mapper.has_requires_approval(about.annotations)
    streaming = getattr(about.annotations, "streaming", False)
    summary = {"name": entry.tool.name, "description": entry.tool.description, "annotations": hints}
    return summary | {"tags": list(about.tags or ()), "requiresApproval": approval, "streaming": streaming}


def _json(content: Any, status: int = 200) -> Response:
    return JSONResponse(content, status, headers=_HEADERS)


def _not_found(request: Request) -> Response:
    return _json({"error": f"Tool '{request.path_params['name']}' not found"}, 404)

"""The Explorer: a page on which people browse, read and try the tools; it runs them as any MCP client does."""

import json
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from apcore_mcp.adapters.annotations import AnnotationMapper
from apcore_mcp.options import Options
from apcore_mcp.server.factory import ModuleEntry
from apcore_mcp.server.listener import RegistryListener
from mcp_serve.answer import Refusal
from mcp_serve.calls import Channel
from mcp_serve.endpoint import Endpoint
from mcp_serve.presence import unless_gone

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_INPUT_FAULTS = ("Input validation failed", "Invalid input")


class Explorer:
    """The page and the JSON it lives on; running tools is off unless the operator allows it."""

    def __init__(self, tools: RegistryListener, endpoint: Endpoint, options: Options) -> None:
        self._tools = tools
        self._endpoint = endpoint
        self._options = options
        policy = _built("explorer.csp").strip()
        self._page = HTMLResponse(_built("explorer.html"), headers=_HEADERS | {"Content-Security-Policy": policy})

    def routes(self) -> list[BaseRoute]:
        """Every address below the prefix."""
        prefix = self._options.explorer_prefix
        return [
            Route(prefix, self._redirect),
            Route(f"{prefix}/", self._show_page),
            Route(f"{prefix}/info", self._info),
            Route(f"{prefix}/tools", self._list),
            Route(f"{prefix}/tools/{{name}}", self._tool),
            Route(f"{prefix}/tools/{{name}}/call", self._call, methods=["POST"]),
        ]

    async def _redirect(self, request: Request) -> Response:
        return RedirectResponse(request.url.path + "/")

    async def _show_page(self, request: Request) -> Response:
        return self._page

    async def _info(self, request: Request) -> Response:
        server = self._endpoint.server
        options = self._options
        about = {
            "name": server.name,
            "version": server.version,
            "allowExecute": options.allow_execute,
            "mcpPath": None if options.transport == "sse" else "../" * options.explorer_prefix.count("/") + "mcp",
        }
        return _json(about)

    async def _list(self, request: Request) -> Response:
        return _json([_summary(entry) for entry in self._tools.entries().values()])

    async def _tool(self, request: Request) -> Response:
        entry = self._tools.entry(request.path_params["name"])
        if entry is None:
            return _not_found(request)
        detail = {
            "inputSchema": entry.tool.input_schema,
            "outputSchema": entry.tool.output_schema,
            "examples": [vars(example) for example in entry.descriptor.examples or ()],
            "documentation": entry.documentation,
        }
        return _json(_summary(entry) | detail)

    async def _call(self, request: Request) -> Response:
        name = request.path_params["name"]
        host = request.headers["host"]
        if not self._options.allow_execute:
            return _json({"error": "Tool execution is disabled"}, 403)
        site = request.headers.get("sec-fetch-site", "same-origin")
        if site not in ("same-origin", "none") or request.headers.get("origin", host).rpartition("/")[2] != host:
            return _json({"error": "Tools run only from the Explorer's own page"}, 403)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _json({"error": "Content-Type must be application/json"}, 415)
        if self._tools.entry(name) is None:
            return _not_found(request)
        call = self._endpoint.calls.begin(name, await request.json(), Channel())
        result: Any = await unless_gone(request.receive, call)
        if result is None:
            return _json({"error": "The client went away"}, 500)
        text = result.text if isinstance(result, Refusal) else result.content[0].text
        if isinstance(result, Refusal) or result.is_error:
            return _json({"error": text}, 400 if text.startswith(_INPUT_FAULTS) else 500)
        return _json({"result": json.loads(text)})


def _built(name: str) -> str:
    """A file that `make ui` put beside this one."""
    return files(__package__).joinpath(name).read_text("utf-8")


def _summary(entry: ModuleEntry) -> dict[str, Any]:
    annotations = entry.descriptor.annotations
    mapper = AnnotationMapper()
    return {
        "name": entry.tool.name,
        "description": entry.tool.description,
        "annotations": mapper.to_mcp_annotations(annotations).model_dump(by_alias=True, exclude_none=True),
        "tags": list(entry.descriptor.tags or ()),
        "requiresApproval": mapper.has_requires_approval(annotations),
        "streaming": getattr(annotations, "streaming", False),
    }


def _json(content: Any, status: int = 200) -> Response:
    return JSONResponse(content, status, headers=_HEADERS)


def _not_found(request: Request) -> Response:
    return _json({"error": f"Tool '{request.path_params['name']}' not found"}, 404)

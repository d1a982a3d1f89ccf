"""A small shop as a real HTTP API, and the OpenAPI document that describes it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

TOKEN = "shop-token-5d1c"

DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "http://{host}/v1", "variables": {"host": {"default": "shop.example"}}}],
    "security": [{"token": []}],
    "paths": {
        "/items": {
            "get": {
                "operationId": "listItems",
                "summary": "List the items.",
                "parameters": [
                    {"$ref": "#/components/parameters/Limit"},
                    {"name": "tag", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                    {"name": "filter[name]", "in": "query", "schema": {"type": "string"}},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                    {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
                    {"name": "session", "in": "cookie", "schema": {"type": "string"}},
                ],
                "responses": {
                    "200": {
                        "description": "Some.",
                        "content": {
                            "application/json": {
                                "schema": {"type": "array", "items": {"$ref": "#/components/schemas/Item"}}
                            }
                        },
                    },
                    "default": {"description": "No."},
                },
            },
            "post": {
                "operationId": "items.add",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Item"}}},
                },
                "responses": {"201": {"description": "Added."}, "200": {"description": "Known."}},
            },
        },
        "/items/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {"operationId": "getItem", "responses": {"200": {"$ref": "#/components/responses/Item"}}},
            "delete": {"responses": {"204": {"description": "Gone."}}},
        },
        "/login": {
            "post": {
                "operationId": "login",
                "requestBody": {
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {"type": "object", "properties": {"user": {"type": "string"}}}
                        }
                    }
                },
                "responses": {"200": {"description": "In."}},
            }
        },
    },
    "components": {
        "parameters": {
            "Limit": {
                "name": "limit",
                "in": "query",
                "description": "At most so many.",
                "schema": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
            }
        },
        "responses": {
            "Item": {
                "description": "One.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Item"}}},
            }
        },
        "schemas": {
            "Item": {
                "type": "object",
                "required": ["id", "name"],
                "properties": {
                    "id": {"type": "string", "readOnly": True},
                    "name": {"type": "string", "example": "lamp"},
                    "note": {"type": "string", "nullable": True},
                    "part_of": {"$ref": "#/components/schemas/Item"},
                },
            }
        },
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    },
}


@dataclass
class Shop:
    """What the shop holds, and every request that it met."""

    port: int = 0
    items: dict[str, dict[str, Any]] = field(default_factory=lambda: {"1": {"id": "1", "name": "lamp", "note": None}})
    requests: list[tuple[str, str]] = field(default_factory=list)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def app(self) -> Starlette:
        routes = [
            Route("/v1/items", self.listed, methods=["GET"]),
            Route("/v1/items", self.add, methods=["POST"]),
            Route("/v1/items/{id}", self.one, methods=["GET", "DELETE"]),
            Route("/v1/login", self.login, methods=["POST"]),
        ]
        return Starlette(routes=routes)

    def _refused(self, request: Request) -> Response | None:
        self.requests.append((request.method, request.scope["raw_path"].decode() + _query(request)))
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return JSONResponse({"error": f"not {request.headers.get('authorization')}"}, 401)
        return None

    async def listed(self, request: Request) -> Response:
        found = list(self.items.values())[: int(request.query_params.get("limit", 100))]
        return self._refused(request) or JSONResponse(found)

    async def one(self, request: Request) -> Response:
        refused = self._refused(request)
        item = self.items.get(request.path_params["id"])
        if refused is not None or item is None:
            return refused or JSONResponse({"error": "no such item"}, 404)
        if request.method == "DELETE":
            del self.items[item["id"]]
            return Response(status_code=204)
        return JSONResponse(item)

    async def add(self, request: Request) -> Response:
        refused = self._refused(request)
        if refused is not None:
            return refused
        item = {"id": str(len(self.items) + 1), **await request.json()}
        self.items[item["id"]] = item
        return JSONResponse(item, 201)

    async def login(self, request: Request) -> Response:
        body = (await request.body()).decode()
        return self._refused(request) or JSONResponse({"got": body, "type": request.headers["content-type"]})


def _query(request: Request) -> str:
    query = request.scope["query_string"].decode()
    return f"?{query}" if query else ""


@contextlib.contextmanager
def open_shop() -> Iterator[Shop]:
    """The shop on a thread of its own, listening."""
    shop = Shop()
    listening = socket.create_server(("127.0.0.1", 0))
    shop.port = listening.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(shop.app(), log_level="critical", lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    try:
        yield shop
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
        assert not thread.is_alive(), "the shop did not close"

"""Routes from the table of operations: each leads to the handler of its name."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Scope

from toolgrove.errors import Forbidden, GroveError
from toolgrove.web.http_json import answer, failure, unkept
from toolgrove.web.operations import OPERATIONS, Operation, Who
from toolgrove.web.schemas import Answer

Handler = Callable[[Request], Awaitable[Answer | Response]]
Handlers = Mapping[str, Handler | ASGIApp]


def routes(handlers: Handlers, refused: Callable[[Scope], Awaitable[None]]) -> list[BaseRoute]:
    """A route for every operation; those that share path and handler share a route, and so its list of methods.

    `refused` hears of agents that ask for what is the operator's.
    """
    shared: dict[tuple[str, Any], list[Operation]] = {}
    for one in OPERATIONS:
        shared.setdefault((one.path, handlers[one.name]), []).append(one)
    return [
        Route(path, _endpoint(handler, group[0].who, refused), methods=[one.method for one in group])
        for (path, handler), group in shared.items()
    ]


def _endpoint(handler: Any, who: Who, refused: Callable[[Scope], Awaitable[None]]) -> Any:
    """The handler as Starlette takes it: what it answers becomes JSON, and what goes wrong an answer."""
    if not inspect.isroutine(handler):
        return handler

    async def respond(request: Request) -> Response:
        try:
            if who == "operator" and not request.user.is_operator:
                await refused(request.scope)
                raise Forbidden("This address is the operator's; use the operator's token.", reason="operator")
            answered = await handler(request)
        except GroveError as error:
            return failure(error)
        except OSError as fault:
            return unkept(fault)
        return answered if isinstance(answered, Response) else answer(answered.to_json())

    return respond

"""What a client of the newer era is told first: without the SDK, word for word what the SDK would have said."""

import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import mcp_types as types
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from lane.twins import MODERN, Answer, Asked, Twin, head_of, request, with_length
from mcp_serve import sdk
from mcp_serve.answer import Answer as Told
from mcp_serve.calls import ToolRun, User
from mcp_serve.endpoint import Endpoint
from mcp_serve.http import StreamableHTTP
from mcp_serve.lane import Lane
from mcp_serve.prompts import NotGiven
from mcp_serve.resources import NotRead
from mcp_serve.table import Json, ToolEntry

pytestmark = pytest.mark.anyio
BODY = json.dumps(request(MODERN, "server/discover", {})).encode()
DISCOVER = Asked(with_length(head_of(MODERN, "server/discover"), BODY), BODY)


class NoTools:
    """A table without tools."""

    def entries(self) -> Mapping[str, ToolEntry]:
        return {}

    def entry(self, name: str) -> ToolEntry | None:
        return None


@dataclass
class Shelf:
    """Resources of which nothing is known but whether there are any, and whether they can be watched."""

    offered: bool
    watchable: bool

    async def listed(self) -> list[Json]:
        return []

    async def templates(self) -> list[Json]:
        return []

    async def read(self, uri: str, user: User | None, meta: Mapping[str, Any]) -> Json:
        raise NotRead

    async def watch(
        self, uri: str, tell: Callable[[], None], user: User | None, meta: Mapping[str, Any]
    ) -> Callable[[], None]:
        raise NotRead


@dataclass
class Prompter:
    """The same of prompts, and whether their arguments can be completed."""

    offered: bool
    completes: bool

    async def listed(self) -> list[Json]:
        return []

    async def get(self, name: str, arguments: Mapping[str, str], user: User | None, meta: Mapping[str, Any]) -> Json:
        raise NotGiven

    async def complete(self, asked: Json, user: User | None, meta: Mapping[str, Any]) -> Json:
        raise NotGiven


async def nothing(name: str, arguments: Json | None, run: ToolRun) -> Told:
    raise AssertionError("there is no tool to run")


def endpoint(shelf: Shelf | None = None, prompter: Prompter | None = None, *, logs: bool | None = None) -> Endpoint:
    heard = None if logs is None else lambda: logs
    return Endpoint("says", "1", NoTools(), nothing, resources=shelf, prompts=prompter, logs=heard)


@asynccontextmanager
async def asking(of: Endpoint, *, lane: bool) -> AsyncIterator[Twin]:
    """A client of an endpoint, with the lane in front of it or without."""
    mcp = StreamableHTTP(of)
    middleware = [Middleware(Lane, find=mcp.line)] if lane else []
    app = Starlette(routes=mcp.routes, middleware=middleware, lifespan=lambda app: mcp.running())
    async with app.router.lifespan_context(app):
        yield Twin(app, "nobody")


async def answers(make: Callable[[], Endpoint]) -> tuple[Answer, Answer]:
    """What the lane says before the SDK has made anything of the endpoint, and what the SDK says."""
    async with asking(make(), lane=True) as mine, asking(make(), lane=False) as theirs:
        return await mine.ask(DISCOVER), await theirs.ask(DISCOVER)


BOTH = (True, False)
SHELVES = [None, *(Shelf(*each) for each in itertools.product(BOTH, BOTH))]
PROMPTERS = [None, *(Prompter(*each) for each in itertools.product(BOTH, BOTH))]


@pytest.mark.parametrize("logs", [None, True, False])
@pytest.mark.parametrize("prompter", PROMPTERS)
@pytest.mark.parametrize("shelf", SHELVES)
async def test_it_tells_of_what_there_is_as_the_sdk_does(
    shelf: Shelf | None, prompter: Prompter | None, logs: bool | None
) -> None:
    mine, theirs = await answers(lambda: endpoint(shelf, prompter, logs=logs))
    assert mine == theirs
    told = mine.body["result"]["capabilities"]
    assert ("resources" in told, "logging" in told) == (shelf is None or shelf.offered, bool(logs))


@pytest.mark.parametrize("instructions", [None, "", "Begin with the ends."])
async def test_it_passes_the_instructions_on(instructions: str | None) -> None:
    def made() -> Endpoint:
        one = endpoint()
        one.instruct(instructions)
        return one

    mine, theirs = await answers(made)
    assert mine == theirs
    assert mine.body["result"].get("instructions") == instructions


async def test_what_is_added_to_the_sdks_server_is_told_too() -> None:
    async def listed(ctx: Any, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[])

    def made() -> Endpoint:
        one = endpoint()
        one.server.add_request_handler("prompts/list", types.PaginatedRequestParams, listed)
        one.server.instructions = "Added."
        return one

    mine, theirs = await answers(made)
    assert mine == theirs
    assert mine.body["result"]["instructions"] == "Added."
    assert "prompts" in mine.body["result"]["capabilities"]


async def test_a_newcomer_is_told_without_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asking(endpoint(), lane=True) as client:
        monkeypatch.setattr(sdk, "server", None)
        assert (await client.ask(DISCOVER)).body["result"]["capabilities"]["tools"] == {"listChanged": True}


async def test_who_answers_discovery_alone_is_asked() -> None:
    async def discovered(ctx: Any, params: Any) -> types.DiscoverResult:
        found = types.ServerCapabilities(experimental={"mine": {}})
        return types.DiscoverResult(supported_versions=[MODERN], capabilities=found)

    def made() -> Endpoint:
        one = endpoint()
        one.server.add_request_handler("server/discover", types.RequestParams, discovered)
        return one

    mine, theirs = await answers(made)
    assert mine == theirs
    assert mine.body["result"]["capabilities"] == {"experimental": {"mine": {}}}

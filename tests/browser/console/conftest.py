"""A gateway in a process of its own, with an upstream whose tools are slow, curious, dangerous and hostile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from apcore import Registry
from playwright.sync_api import Browser

from browser.conftest import PATIENCE
from browser.console.hand import Hand, branch
from browser.console.page import ConsolePage, Visit
from browser.modules import EVIL, Hostile, sample_registry
from e2e.modules import Journal
from e2e.servers import serving as serving_modules
from modules import Sample
from runners.endpoint import Reply, obeying
from runners.endpoint import serving as serving_model
from web.gateway import Gateway, serving

SHALLOW = {"type": "object", "properties": {EVIL: {"type": "string", "default": EVIL, "description": EVIL}}}
TASK = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "status": {"enum": ["open", "done"]}, "hours": {"type": "integer"}},
    "required": ["name"],
}
AGENTS: dict[str, Any] = {
    "reader": {
        "description": f"Looks things up. {EVIL}",
        "tools": ["get_*", "list_*", "select_nodes", "up_*", "get_noed"],
        "mcp": {"up": {"mask": ["files.*"]}},
    },
    "writer": {
        "description": "Works on the tree.",
        "role": "editor",
        "tools": ["*"],
        "deny": ["import_view"],
        "approve": ["remove_*", "up_data_table"],
    },
    "asker": {"role": "editor", "tools": ["*"], "approve": ["remove_*"], "askClient": True},
}
ORDER = {
    "method": "PUT",
    "url": "https://shop.example/orders/{number}?key=${env:SHOP_KEY}",
    "description": "Orders something.",
    "inputSchema": {"type": "object", "properties": {"number": {"type": "string"}, "what": {"type": "string"}}},
}
EXTENSIONS = Path(__file__).parents[3] / "examples" / "extensions"


def metered(request: dict[str, Any]) -> Reply:
    """A model that does as it is told and says how many tokens that took."""
    reply = obeying(request)
    usage = {"prompt_tokens": 1_200, "completion_tokens": 30, "total_tokens": 1_230}
    return replace(reply, body=json.dumps({**json.loads(reply.body), "usage": usage}).encode())


def project(upstream: str, model: str = "http://127.0.0.1:9/v1") -> dict[str, Any]:
    """The project of these tests."""
    return {
        "project": "garden",
        "state": "state",
        "workspace": {"allowUnknownTypes": True, "payloadTypes": {"Task": {"schema": TASK}}},
        "extensions": str(EXTENSIONS),
        "httpTools": {"order": ORDER, "get_node": ORDER},
        "mcpServers": {"up": {"url": upstream}, "down": {"command": "/nonexistent/server"}},
        "agents": AGENTS,
        "runner": {"kind": "openai", "url": model, "model": "obeying"},
    }


@pytest.fixture(scope="package")
def upstream_journal(tmp_path_factory: pytest.TempPathFactory) -> Journal:
    return Journal(tmp_path_factory.mktemp("upstream") / "journal")


@pytest.fixture(scope="package")
def modules(upstream_journal: Journal) -> Registry:
    """What the upstream offers; tests may change it."""
    registry = sample_registry(upstream_journal)
    hostile = Hostile(upstream_journal)
    registry.register("hostile.result", Sample(hostile.execute, schema=SHALLOW, description=f"Answers badly. {EVIL}"))
    return registry


@pytest.fixture(scope="package")
def gateway(tmp_path_factory: pytest.TempPathFactory, modules: Registry) -> Iterator[Gateway]:
    with (
        serving_modules(modules) as upstream,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving_model(metered)) as model,
        serving(tmp_path_factory.mktemp("project"), project(upstream.mcp, model.url)) as served,
    ):
        yield served


@pytest.fixture
def writer(gateway: Gateway) -> Iterator[Hand]:
    hand = Hand(gateway, "writer")
    yield hand
    hand.close()


@pytest.fixture
def house(writer: Hand, request: pytest.FixtureRequest) -> str:
    """A subtree of the test's own: house > kitchen, bath, hall."""
    name: str = request.node.name.partition("[")[0]
    rooms = (branch(f"{name}-{room}", type="Room", status="open", size=size) for room, size in ROOMS.items())
    writer.plant(branch(name, *rooms, type="House"))
    return name


ROOMS = {"kitchen": 12, "bath": 6, "hall": 9}


@pytest.fixture
def tab(chromium: Browser, gateway: Gateway) -> Iterator[Visit]:
    """Opens a tab of its own; it must have been silent in the end."""
    pages: list[ConsolePage] = []
    with ExitStack() as stack:

        def opened(fragment: str = "", *, at: Gateway = gateway, width: int = 1280, height: int = 800) -> ConsolePage:
            context = chromium.new_context(
                viewport={"width": width, "height": height},
                color_scheme="light",
                reduced_motion="reduce",
                permissions=["clipboard-read", "clipboard-write"],
            )
            stack.callback(context.close)
            context.set_default_timeout(PATIENCE)
            page = ConsolePage(context.new_page(), at.base)
            pages.append(page)
            page.load(fragment)
            return page

        yield opened
        for page in pages:
            page.assert_silent()


@pytest.fixture
def visit(tab: Visit, gateway: Gateway) -> Visit:
    """Opens the console as the address that `serve` printed does."""

    def opened(*way: str, **options: Any) -> ConsolePage:
        page = tab(f"#{gateway.console.partition('#')[2]}", **options)
        page.expect_live()
        if way:
            page.go(*way)
        return page

    return opened

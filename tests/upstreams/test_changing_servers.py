"""Our own bridge as an upstream over HTTP: tools come and go there, and the pool hears of it in both eras."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from apcore import Registry

from e2e.servers import Address, serving
from faults.proxy import Proxy
from modules import Sample, echo
from toolgrove import Agent, Grove
from upstreams.servers import offered, project

pytestmark = pytest.mark.anyio
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    registry.register("text.echo", module())
    return registry


@pytest.fixture
def address(registry: Registry) -> Iterator[Address]:
    with serving(registry) as served:
        yield served


@pytest.fixture(params=["modern", "legacy"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def module(description: str = "Says it again.") -> Any:
    return Sample(echo, schema=TEXT, output=TEXT, description=description)


async def sees(grove: Grove, *tools: str) -> Agent:
    """The agent, as soon as it has exactly these tools of the upstream."""
    while True:
        agent = await grove.agent("editor")
        if offered(agent, "up") == set(tools):
            return agent
        await anyio.sleep(0.01)


@pytest.mark.requirement("POOL-002-02")
async def test_a_module_that_comes_or_goes_is_noticed(registry: Registry, address: Address, protocol: str) -> None:
    async with project({"up": {"url": address.mcp, "protocol": protocol}}) as grove:
        before = await sees(grove, "text_echo")
        registry.register("text.more", module())
        after = await sees(grove, "text_echo", "text_more")
        assert (await after.call("up_text_more", {"text": "x"}))["structuredContent"] == {"text": "x"}
        assert (await before.call("up_text_more", {"text": "x"}))["error"]["code"] == "not_found"
        registry.unregister("text.more")
        await sees(grove, "text_echo")


async def test_a_module_that_becomes_another_is_quarantined(
    registry: Registry, address: Address, protocol: str, tmp_path: Path
) -> None:
    servers = {"up": {"url": address.mcp, "protocol": protocol}}
    async with project(servers, state=tmp_path) as grove:
        await sees(grove, "text_echo")  # the first contact, which a second process no longer has
    async with project(servers, state=tmp_path) as grove:
        await sees(grove, "text_echo")
        registry.unregister("text.echo")
        registry.register("text.echo", module("Says it again, to somebody else."))
        agent = await sees(grove)
        while agent.receipt["up_text_echo"].verdict != "quarantined":
            agent = await sees(grove)


async def test_a_change_during_an_outage_is_noticed_afterwards(
    registry: Registry, address: Address, protocol: str
) -> None:
    """The announcement is lost with the connection; whoever listens again must look again."""
    with Proxy(target=address.port).serving() as proxy:
        url = f"http://127.0.0.1:{proxy.port}/mcp"
        async with project({"up": {"url": url, "protocol": protocol}}) as grove:
            await sees(grove, "text_echo")
            proxy.blackhole = True
            proxy.reset()
            registry.register("text.more", module())
            proxy.blackhole = False
            agent = await sees(grove, "text_echo", "text_more")
            while "error" in await agent.call("up_text_more", {"text": "x"}):
                await anyio.sleep(0.01)

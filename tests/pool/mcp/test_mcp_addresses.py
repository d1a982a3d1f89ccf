"""Which addresses the url of an MCP server may lead to: judged after resolution, and connected to as judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pool.http.http_kit import Resolver, answer, upstream
from pool.mcp.mcp_kit import ready, running
from toolgrove.pool.offer import Unavailable

pytestmark = pytest.mark.anyio

WAY = "allowPrivate: true on mcpServers.up allows it"
PRIVATE = ["10.0.0.1", "192.168.1.1", "fd12::1", "127.0.0.1", "::1", "64:ff9b::808:808", "2002:808:808::", "100.64.0.1"]
NEVER = ["169.254.169.254", "fd00:ec2::254", "fe80::1", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "168.63.129.16"]


async def problem(config: dict[str, Any], *addresses: str, **environ: str) -> str:
    """Why a server whose name leads to these addresses is not asked."""
    async with running(config, resolve=Resolver(addresses), environ=environ) as hand:
        with pytest.raises(Unavailable) as caught:
            await hand.source.discover()
        return str(caught.value)


@pytest.mark.parametrize("address", [*PRIVATE, *NEVER])
async def test_a_name_that_leads_inside_is_refused_before_anything_is_sent(address: str) -> None:
    async with upstream(answer()) as server:
        config = {"url": f"http://tools.example:{server.port}/mcp"}
        said = await problem(config, "93.184.216.34", address)
        assert "has a url that leads to a" in said
        assert (WAY in said) == (address in PRIVATE)
        assert address not in said
        assert server.connections == 0


@pytest.mark.parametrize("address", NEVER)
async def test_allow_private_opens_neither_metadata_nor_link_local(address: str) -> None:
    said = await problem({"url": "http://tools.example/mcp", "allowPrivate": True}, address)
    assert "which is not reached" in said
    assert "allowPrivate" not in said


async def test_the_connection_goes_to_the_address_that_was_checked(shared_web: tuple[int, Path]) -> None:
    port, _ = shared_web
    resolver = Resolver(["127.0.0.1"])
    entry = {"url": f"http://tools.example:{port}/mcp", "allowPrivate": True}
    async with ready(entry, resolve=resolver) as hand:
        assert await hand.text("echo", text="hello") == "hello"
    assert set(resolver.asked) == {"tools.example"}


async def test_every_new_connection_is_checked_again() -> None:
    resolver = Resolver(["127.0.0.1"], ["169.254.169.254"])
    async with upstream(answer(connection="close")) as server:
        entry = {"url": f"http://tools.example:{server.port}/mcp", "allowPrivate": True}
        async with running(entry, resolve=resolver) as hand:
            with pytest.raises(Unavailable):
                await hand.source.discover()
        assert server.connections == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
async def test_loopback_in_the_file_is_the_operators_word(shared_web: tuple[int, Path], host: str) -> None:
    port, _ = shared_web
    async with ready({"url": f"http://{host}:{port}/mcp"}, resolve=Resolver(["127.0.0.1"])) as hand:
        assert await hand.text("echo", text="hello") == "hello"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_loopback_in_the_file_opens_nothing_else(host: str) -> None:
    assert WAY in await problem({"url": f"http://{host}/mcp"}, "10.0.0.1")


async def test_loopback_out_of_a_secret_is_not_in_the_file() -> None:
    said = await problem({"url": "http://${env:WHERE}/mcp"}, "127.0.0.1", WHERE="127.0.0.1:9")
    assert "loopback" in said
    assert WAY in said


async def test_a_redirect_leads_nowhere() -> None:
    async with upstream(answer()) as inside:
        async with upstream(answer(307, location=f"{inside.base}/mcp")) as server:
            assert "redirect" in await problem({"url": f"{server.base}/mcp"}, "127.0.0.1")
        assert inside.connections == 0

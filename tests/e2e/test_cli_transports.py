"""`apcore-mcp` over the transport that it is told, and without being told."""

from pathlib import Path

import pytest
from mcp import Client, stdio_client
from mcp.client.sse import sse_client

from e2e.servers import cli_command, http_child, over_stdio
from modules import EXTENSION
from ports import free_port
from waiting import DEADLINE

pytestmark = pytest.mark.anyio


@pytest.fixture
def extensions(tmp_path: Path) -> Path:
    (tmp_path / "greet.py").write_text(EXTENSION)
    return tmp_path


@pytest.mark.requirement("FR-CLI-003")
async def test_without_a_transport_the_command_speaks_stdio(extensions: Path) -> None:
    async with Client(stdio_client(over_stdio(cli_command(extensions))), read_timeout_seconds=DEADLINE) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["greet"]


@pytest.mark.requirement("FR-CLI-003", "FR-SERVER-003")
async def test_with_sse_the_command_serves_clients_of_sse(extensions: Path) -> None:
    port = free_port()
    command = cli_command(extensions, "--transport", "sse", "--port", str(port))
    with http_child(command, port) as (_, address):
        transport = sse_client(address / "sse")
        async with Client(transport, mode="legacy", read_timeout_seconds=DEADLINE) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["greet"]


@pytest.mark.requirement("FR-CLI-003", "FR-SERVER-002")
async def test_with_streamable_http_the_command_serves_its_clients(extensions: Path) -> None:
    port = free_port()
    command = cli_command(extensions, "--transport", "streamable-http", "--port", str(port))
    with http_child(command, port) as (_, address):
        async with Client(address.mcp, read_timeout_seconds=DEADLINE) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["greet"]

"""The example scripts, run as a reader would run them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from starlette.testclient import TestClient

from e2e.servers import child, serving
from examples.samples import EXAMPLES, User, connected, discovered, output
from mcp_text import text_of
from ports import free_port
from warm.command import python

pytestmark = pytest.mark.anyio


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Scripts import their neighbours, as they do when they are run."""
    monkeypatch.syspath_prepend(EXAMPLES)
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        if Path(getattr(sys.modules[name], "__file__", None) or "").parent == EXAMPLES:
            del sys.modules[name]


def run(script: str, *arguments: str) -> str:
    command = python(str(EXAMPLES / script), *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture(params=["auto", "legacy"], ids=["2026", "handshake"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_the_quick_start_serves_its_module_over_stdio(era: str) -> None:
    server = StdioServerParameters(command=sys.executable, args=[str(EXAMPLES / "quickstart.py")])
    async with Client(server, mode=era) as client:
        (tool,) = (await client.list_tools()).tools
        result = await client.call_tool("greet", {"name": "Ada"})
    assert (tool.name, tool.description) == ("greet", "Greet somebody by name.")
    assert output(result) == {"result": "Hello, Ada!"}


def test_the_quick_start_has_about_fifteen_lines_of_code() -> None:
    lines = (EXAMPLES / "quickstart.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 17


def test_the_openai_example_prints_tools_and_answers_a_call() -> None:
    *tools, answer = run("openai_tools.py").splitlines()
    functions = [tool["function"] for tool in json.loads("\n".join(tools))]
    assert [function["name"] for function in functions] == ["text-count", "text-redact", "text-slugify"]
    assert all(function["strict"] for function in functions)
    assert '{"slug": "hello-world"}' in answer


@pytest.mark.usefixtures("on_path")
def test_the_embedded_app_serves_its_own_page_the_explorer_and_health() -> None:
    import embed

    with TestClient(embed.app, base_url="http://localhost") as client:
        assert client.get("/").text == "MCP is at /tools/mcp, the Explorer at /tools/explorer/"
        assert client.get("/tools/health").json()["module_count"] == 1
        assert client.get("/tools/explorer").url.path == "/tools/explorer/"
        assert client.get("/tools/explorer/info").json()["name"] == "embedded"


@pytest.mark.usefixtures("on_path")
async def test_a_client_calls_the_embedded_app_once_its_lifespan_is_entered(era: str) -> None:
    import embed

    transport = httpx2.ASGITransport(embed.app)
    async with (
        embed.app.router.lifespan_context(embed.app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http,
        Client(streamable_http_client("http://localhost/tools/mcp", http_client=http), mode=era) as client,
    ):
        assert output(await client.call_tool("greet", {"name": "Ada"})) == {"result": "Hello, Ada!"}


def test_the_bridge_runs_beside_other_work() -> None:
    port = free_port()
    assert f"http://127.0.0.1:{port}/mcp" in run("in_a_loop.py", str(port))


def test_the_client_example_lists_calls_and_watches() -> None:
    with serving(discovered()) as address:
        printed = run("client.py", address.mcp)
    assert "text.slugify - Turn a title into a slug" in printed
    assert "  10 of 10: sieved by 32" in printed
    assert printed.endswith("{'count': 168, 'largest': 997}\n")


@pytest.mark.usefixtures("on_path")
@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (User("accept", yes=True), '"removed": ["holiday-final.mp4"'),
        (User("accept", yes=False), "Module error: APPROVAL_DENIED"),
        (User("decline"), "Module error: APPROVAL_DENIED"),
        (None, "Module error: APPROVAL_DENIED"),
    ],
    ids=["yes", "no", "declined", "nobody to ask"],
)
async def test_a_governed_server_asks_before_a_tool_that_needs_approval(
    era: str, user: User | None, expected: str
) -> None:
    import governed

    asks: dict[str, Any] = {"elicitation_callback": user} if user else {}
    async with connected(governed.executor_for(discovered()), era, **asks) as client:
        assert expected in text_of(await client.call_tool("files.empty_trash", {}))
        assert output(await client.call_tool("text.slugify", {"title": "A"})) == {"slug": "a"}
        assert text_of(await client.call_tool("stories.tell", {})) == "Access denied"


async def test_the_governed_server_starts_over_stdio() -> None:
    server = StdioServerParameters(command=sys.executable, args=[str(EXAMPLES / "governed.py")])
    async with Client(server) as client:
        assert client.server_info is not None
        assert client.server_info.name == "governed"
        assert len((await client.list_tools()).tools) == 10


def test_make_explorer_serves_the_samples_and_the_explorer() -> None:
    makefile = (EXAMPLES.parent / "Makefile").read_text()
    recipe = makefile.partition("\nexplorer:")[2].partition("\n\n")[0].partition("\n")[2].replace("\\\n", " ")
    port = free_port()
    command = python("-m", "apcore_mcp", *recipe.replace("$(PORT)", str(port)).split()[1:])
    with child(command, cwd=EXAMPLES.parent, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        started = next(line for line in process.stderr if b"server started" in line)
        assert b"10 tools registered, transport=streamable-http" in started
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}") as http:
            assert http.get("/explorer/").headers["content-type"].startswith("text/html")
            assert http.get("/explorer/info").json()["allowExecute"] is True
            assert http.get("/explorer/info").json()["name"] == "toolgrove-samples"


def test_the_tree_example_finds_what_it_added() -> None:
    done = subprocess.run(python(str(EXAMPLES / "tree.py")), capture_output=True, text=True, check=True)
    assert done.stdout == "[{'name': 'Water the plants'}]\n"

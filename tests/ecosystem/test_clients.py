"""Every client lists an agent that has everything, makes a call that works, one that fails and one that waits."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.node_tools import INSPECTOR, NODE, TOOLS
from ecosystem.environments import NODE_MODULES, python_of, require
from upstreams.servers import FILESYSTEM
from waiting import DEADLINE
from web.gateway import Gateway, serving

pytestmark = [pytest.mark.ecosystem, pytest.mark.timeout(600)]

HERE = Path(__file__).parent / "clients"
SLOW = 10 * DEADLINE  # large frameworks on a busy machine
OURS = Path(sys.executable)
# The environment and the program of each; more words are handed to the program.
PYTHON_CLIENTS: dict[str, tuple[Path, str, *tuple[str, ...]]] = {
    "mcp 1": (python_of("mcp-1"), "mcp_1"),
    "mcp 2": (OURS, "mcp_2", "auto"),
    "mcp 2, handshake": (OURS, "mcp_2", "legacy"),
    "fastmcp": (OURS, "fastmcp_client"),
    "langchain": (python_of("langchain"), "langchain"),
    "openai-agents": (python_of("openai-agents"), "openai_agents"),
    "pydantic-ai": (python_of("pydantic-ai"), "pydantic_ai_client"),
    "google-adk": (OURS, "google_adk"),
    "llama-index": (python_of("llama-index"), "llama_index_client"),
    "autogen": (python_of("autogen"), "autogen"),
    "crewai": (python_of("crewai"), "crewai_client"),
    "semantic-kernel": (python_of("semantic-kernel"), "semantic_kernel_client"),
    "strands": (python_of("strands"), "strands_client"),
    "smolagents": (python_of("smolagents"), "smolagents_client"),
}
NODE_CLIENTS = {
    "typescript-1": TOOLS,
    "typescript-2": TOOLS,
    "vercel": NODE_MODULES.parent,
    "mastra": NODE_MODULES.parent,
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    require(NODE, FILESYSTEM)
    folder = tmp_path_factory.mktemp("files").resolve()
    (folder / "note.txt").touch()
    config = {
        "mcpServers": {"fs": {"command": str(NODE), "args": [str(FILESYSTEM), str(folder)]}},
        "agents": {"all": {"role": "editor", "tools": ["*"], "approve": ["fs_write_file"]}},
    }
    with serving(tmp_path_factory.mktemp("project"), config) as served:
        yield served


def calls(gateway: Gateway) -> list[tuple[str, dict[str, Any]]]:
    folder = json.loads(gateway.file.read_text("utf-8"))["mcpServers"]["fs"]["args"][1]
    return [
        # No optional arguments: some clients send null for those that nobody set, which the server refuses by itself.
        ("fs_list_directory", {"path": folder}),
        ("get_node", {"nodeId": "nowhere"}),
        ("fs_write_file", {"path": f"{folder}/other.txt", "content": "mint"}),
    ]


def names(gateway: Gateway) -> list[str]:
    done = _run([str(OURS), str(HERE / "mcp_2.py"), *_words(gateway), "auto"])
    listed: list[str] = done["tools"]
    return listed


def _words(gateway: Gateway) -> list[str]:
    return [gateway.agents["all"], gateway.tokens["all"], json.dumps(calls(gateway))]


def _run(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=SLOW,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


def check(gateway: Gateway, seen: dict[str, Any]) -> None:
    works, fails, waits = seen["seen"]
    assert "[FILE] note.txt" in works
    assert not works.startswith("raised")
    assert "nowhere" in fails
    assert "approv" in waits
    assert seen["tools"] == names(gateway)


@pytest.mark.parametrize("client", PYTHON_CLIENTS)
def test_a_python_client_works(gateway: Gateway, client: str) -> None:
    python, program, *more = PYTHON_CLIENTS[client]
    require(python)
    check(gateway, _run([str(python), str(HERE / f"{program}.py"), *_words(gateway), *more]))


@pytest.mark.parametrize("client", NODE_CLIENTS)
def test_a_node_client_works(gateway: Gateway, client: str) -> None:
    folder = NODE_CLIENTS[client]
    require(folder / "node_modules")
    check(gateway, _run([str(NODE), str(HERE / "visit.mjs"), client, *_words(gateway), str(folder)]))


def test_the_inspector_works(gateway: Gateway) -> None:
    require(INSPECTOR)
    where = [str(NODE), str(INSPECTOR), "--cli", gateway.agents["all"], "--transport", "http", "--stored-auth-only"]
    where += ["--header", f"Authorization: Bearer {gateway.tokens['all']}", "--format", "json", "--method"]

    def inspect(*arguments: str) -> str:
        done = subprocess.run([*where, *arguments], capture_output=True, text=True, timeout=SLOW, cwd=TOOLS)
        return done.stdout + done.stderr

    listed, _ = json.JSONDecoder().raw_decode(inspect("tools/list"))
    tools = listed.get("result", listed)["tools"]
    seen = []
    for tool, arguments in calls(gateway):
        said = [f"{key}={value}" for key, value in arguments.items()]
        seen.append(inspect("tools/call", "--tool-name", tool, *(word for one in said for word in ("--tool-arg", one))))
    check(gateway, {"tools": sorted(tool["name"] for tool in tools), "seen": seen})

"""Real servers behind one gateway: what a client gets is what the server gave, definitions and results alike."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from e2e.node_tools import NODE
from e2e.wire import call_body, messages, modern_body, modern_headers
from ecosystem.direct import direct
from ecosystem.environments import NODE_MODULES, python_of, require
from upstreams.servers import EVERYTHING, FILESYSTEM
from waiting import DEADLINE
from web.gateway import Gateway, serving

pytestmark = [pytest.mark.ecosystem, pytest.mark.timeout(600)]

Json = dict[str, Any]
PACKAGES = NODE_MODULES / "@modelcontextprotocol"


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server as an operator writes it, in a folder of its own, and the calls to make, in this order."""

    command: Callable[[Path], list[str | Path]]
    calls: Callable[[Path], list[tuple[str, Json]]]
    env: Callable[[Path], dict[str, str]] = lambda folder: {}
    not_offered: frozenset[str] = field(default_factory=frozenset)


def module(environment: str, name: str, *arguments: str) -> Callable[[Path], list[str | Path]]:
    return lambda folder: [python_of(environment), "-m", name, *arguments]


def package(name: str, *arguments: str) -> Callable[[Path], list[str | Path]]:
    return lambda folder: [NODE, PACKAGES / name / "dist" / "index.js", *arguments]


SERVERS = {
    "everything": Server(
        command=lambda folder: [NODE, EVERYTHING, "stdio"],
        calls=lambda folder: [
            ("echo", {"message": "thyme"}),
            ("get-sum", {"a": 2, "b": 3}),
            ("get-structured-content", {"location": "Chicago"}),
            ("get-tiny-image", {}),
            ("get-annotated-message", {"messageType": "error", "includeImage": True}),
            ("get-resource-links", {"count": 3}),
        ],
        not_offered=frozenset({"simulate-research-query"}),  # it runs as a task only
    ),
    "filesystem": Server(
        command=lambda folder: [NODE, FILESYSTEM, folder],
        calls=lambda folder: [
            ("list_allowed_directories", {}),
            ("write_file", {"path": f"{folder}/a.txt", "content": "sage\n"}),
            ("read_text_file", {"path": f"{folder}/a.txt"}),
            ("read_text_file", {"path": f"{folder}/missing.txt"}),
            ("list_directory", {"path": str(folder)}),
            ("edit_file", {"path": f"{folder}/a.txt", "edits": [{"oldText": "sage", "newText": "mint"}]}),
        ],
    ),
    "memory": Server(
        command=package("server-memory"),
        env=lambda folder: {"MEMORY_FILE_PATH": str(folder / "memory.json")},
        calls=lambda folder: [
            ("create_entities", {"entities": [{"name": "Thyme", "entityType": "herb", "observations": ["small"]}]}),
            ("read_graph", {}),
            ("add_observations", {"observations": [{"entityName": "Nobody", "contents": ["x"]}]}),
        ],
    ),
    "thinking": Server(
        command=package("server-sequential-thinking"),
        calls=lambda folder: [
            (
                "sequentialthinking",
                {"thought": "one", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 2},
            )
        ],
    ),
    "pdf": Server(command=package("server-pdf", "--stdio"), calls=lambda folder: [("list_pdfs", {})]),
    "git": Server(
        command=lambda folder: [sys.executable, "-m", "mcp_server_git", "-r", folder],
        calls=lambda folder: [
            ("git_status", {"repo_path": str(folder)}),
            ("git_log", {"repo_path": str(folder), "max_count": 1}),
            ("git_show", {"repo_path": str(folder), "revision": "nowhere"}),
        ],
    ),
    "time": Server(
        command=lambda folder: [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"],
        calls=lambda folder: [
            ("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
            ("convert_time", {"source_timezone": "Nowhere", "time": "12:00", "target_timezone": "UTC"}),
        ],
    ),
    "fetch": Server(
        command=module("fetch", "mcp_server_fetch"), calls=lambda folder: [("fetch", {"url": "http://127.0.0.1:9/"})]
    ),
    "sqlite": Server(
        command=lambda folder: [python_of("sqlite").with_name("mcp-server-sqlite"), "--db-path", folder / "s.db"],
        calls=lambda folder: [
            ("create_table", {"query": "CREATE TABLE herb (name TEXT)"}),
            ("write_query", {"query": "INSERT INTO herb VALUES ('sage')"}),
            ("read_query", {"query": "SELECT * FROM herb"}),
            ("read_query", {"query": "SELECT * FROM nowhere"}),
        ],
    ),
    "excel": Server(
        command=lambda folder: [python_of("excel").with_name("excel-mcp-server"), "stdio"],
        calls=lambda folder: [
            ("create_workbook", {"path": f"{folder}/h.xlsx", "sheets": ["Herbs"]}),
            ("write_range", {"path": f"{folder}/h.xlsx", "sheet": "Herbs", "at": "A1", "rows": [["sage", 2]]}),
            ("read_range", {"path": f"{folder}/h.xlsx", "sheet": "Herbs"}),
            ("read_range", {"path": f"{folder}/missing.xlsx", "sheet": "Herbs"}),
        ],
    ),
    "calculator": Server(
        command=lambda folder: [python_of("calculator").with_name("mcp-server-calculator")],
        calls=lambda folder: [("calculate", {"expression": "6*7"}), ("calculate", {"expression": "1/0"})],
    ),
    "markitdown": Server(
        command=lambda folder: [python_of("markitdown").with_name("markitdown-mcp")],
        calls=lambda folder: [("convert_to_markdown", {"uri": "data:text/html,<h1>Thyme</h1>"})],
    ),
}


def prepared(folder: Path) -> Path:
    """The same beginning for both sides: a repository with one commit, of a fixed author and date."""
    folder.mkdir(parents=True)
    (folder / "README").write_text("A garden.\n", "utf-8")
    name = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b"}
    dates = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
    for words in (["init", "-q", "-b", "main"], ["add", "README"], ["commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *words], cwd=folder, env={"PATH": "/usr/bin:/bin"} | name | dates, check=True)
    return folder.resolve()


def folder_of(root: Path, name: str) -> Path:
    return (root / name).resolve()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gateway").resolve()


@pytest.fixture(scope="module")
def gateway(root: Path) -> Iterator[Gateway]:
    servers = {}
    for name, server in SERVERS.items():
        folder = prepared(root / name)
        program, *arguments = map(str, server.command(folder))
        require(Path(program))
        servers[name] = {"command": program, "args": arguments, "env": server.env(folder), "cwd": str(folder)}
    config = {
        "startupBudget": 5 * DEADLINE,
        "mcpServers": servers,
        "agents": {"all": {"role": "editor", "tools": ["*"], "apps": True}},
    }
    with serving(root / "project", config) as served:
        yield served


def ask(gateway: Gateway, body: Json, headers: dict[str, str]) -> Json:
    headers = headers | gateway.headers("all")
    answer: Json = messages(httpx2.post(gateway.agents["all"], json=body, headers=headers, timeout=2 * DEADLINE))[-1]
    return answer


def listed(gateway: Gateway, server: str) -> dict[str, Json]:
    """The definitions by the server's own names."""
    answer = ask(gateway, modern_body("tools/list"), modern_headers("tools/list"))
    prefix = f"{server}_"
    tools = (tool for tool in answer["result"]["tools"] if tool["name"].startswith(prefix))
    return {tool["name"].removeprefix(prefix): tool for tool in tools}


def plain(answer: Json, folder: Path) -> Any:
    """An answer without what the transport adds, and with the folder's name taken out."""
    if "error" in answer:
        return {"isError": True, "content": [{"type": "text", "text": answer["error"]["message"]}]}
    result = {key: value for key, value in answer["result"].items() if key != "resultType"}
    if meta := {key: value for key, value in result.pop("_meta", {}).items() if not _is_ours(key)}:
        result["_meta"] = meta
    result.setdefault("isError", False)  # absent means the same
    return _without(result, str(folder))


def _is_ours(key: str) -> bool:
    return key.startswith(("toolgrove/", "io.modelcontextprotocol/"))


def _without(value: Any, folder: str) -> Any:
    if isinstance(value, str):
        return value.replace(folder, "FOLDER")
    if isinstance(value, list):
        return [_without(one, folder) for one in value]
    if isinstance(value, dict):
        return {key: _without(one, folder) for key, one in value.items()}
    return value


@pytest.mark.parametrize("name", SERVERS)
def test_what_a_server_gives_arrives_unchanged(gateway: Gateway, root: Path, tmp_path: Path, name: str) -> None:
    server = SERVERS[name]
    behind, beside = folder_of(root, name), prepared(tmp_path / name)
    command = list(map(str, server.command(beside)))
    with direct(command, server.env(beside), beside) as session:
        wanted = {key: tool for key, tool in session.tools().items() if key not in server.not_offered}
        found = listed(gateway, name)
        assert found.keys() == wanted.keys()
        for key, definition in wanted.items():
            assert _without(found[key] | {"name": key}, str(behind)) == _without(definition, str(beside)), key
        for (tool, arguments), (_, theirs) in zip(server.calls(behind), server.calls(beside), strict=True):
            body, headers = call_body(f"{name}_{tool}", arguments), modern_headers("tools/call", f"{name}_{tool}")
            through = plain(ask(gateway, body, headers), behind)
            assert through == plain(session.call(tool, theirs), beside), tool

"""The tutorials, step by step: files are written as the page says, commands run, and what they print compared."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from toolgrove.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent
FENCE = re.compile(r"^```(?P<language>\w+)(?P<rest>.*)\n(?P<text>(?:.*\n)*?)```$", re.MULTILINE)
Json = dict[str, Any]


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository and a home of their own, with a uvx that starts what is installed here."""
    folder = tmp_path / "work"
    uvx = tmp_path / "bin" / "uvx"
    uvx.parent.mkdir()
    uvx.write_text(f'#!/bin/sh\npackage="${{1%%==*}}"; shift\nexec "{Path(sys.executable).parent}/$package" "$@"\n')
    uvx.chmod(0o755)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{uvx.parent}:{Path(shutil.which('git') or '').parent}:/usr/bin:/bin")
    return folder


def follow(page: str, capsys: pytest.CaptureFixture[str], **replaced: str) -> None:
    """Do all that a page says, in its order."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    steps = 0
    for block in FENCE.finditer(text):
        title = re.search(r'title="([^"]+)"', block["rest"])
        shown = block["text"]
        for old, new in replaced.items():
            shown = shown.replace(old, new)
        if block["language"] in ("yaml", "python") and title:
            more = "startupBudget: 60\n" if block["language"] == "yaml" else ""
            Path(Path(title[1]).name).write_text(shown + more, encoding="utf-8")
        elif block["language"] == "console":
            for part in re.split(r"^\$ ", shown, flags=re.MULTILINE)[1:]:
                command, _, printed = part.partition("\n")
                run(command, printed, capsys)
                steps += 1
    assert steps >= 3


def run(command: str, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *words = shlex.split(command)
    assert name == "toolgrove"
    if "APPROVAL" in words:
        main(["approvals", "--json"])
        [waiting] = json.loads(capsys.readouterr().out)
        words[words.index("APPROVAL")] = waiting["id"]
    main(words)
    said = capsys.readouterr()
    whole = "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", printed.replace("…\n", "…")))
    assert re.fullmatch(f"{whole}.*", said.out + said.err, re.DOTALL), said.out + said.err


def connected(entry: Json) -> set[str]:
    """The tools of the server that a client's entry starts."""
    parameters = StdioServerParameters(command=entry["command"], args=entry["args"])

    async def listed() -> set[str]:
        with anyio.fail_after(100):
            async with Client(stdio_client(parameters)) as client:
                return {tool.name for tool in (await client.list_tools()).tools}

    return anyio.run(listed)


def test_my_functions_in_claude_desktop(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    follow("tutorial-functions.md", capsys)
    settings = json.loads((tmp_path / ".config/Claude/claude_desktop_config.json").read_text())
    assert connected(settings["mcpServers"]["functions"]) == {"days_between", "plan_beds"}
    example = (ROOT / "examples" / "functions.py").read_text(encoding="utf-8")
    assert Path("functions.py").read_text(encoding="utf-8") in example


def test_my_mcp_servers_for_two_agents(capsys: pytest.CaptureFixture[str], workplace: Path) -> None:
    follow("tutorial-servers.md", capsys)
    [coder] = json.loads((workplace / ".mcp.json").read_text())["mcpServers"].values()
    [reviewer] = json.loads((workplace / ".cursor/mcp.json").read_text())["mcpServers"].values()
    assert "coder" in coder["args"]
    tools = connected(reviewer)
    assert {"git_log", "time_get_current_time"} <= tools
    assert "git_commit" not in tools


DOCUMENT: Json = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "paths": {
        "/items/": {
            "get": {"operationId": "list_items_items__get", "summary": "List items", "tags": ["items"]},
            "post": {
                "operationId": "create_item_items__post",
                "summary": "Create an item",
                "tags": ["items"],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "properties": {"name": {"type": "string"}},
                                "required": ["name"],
                            }
                        }
                    },
                },
            },
        },
        "/items/{item_id}": {
            "get": {
                "operationId": "read_item_items__item_id__get",
                "summary": "Read an item",
                "tags": ["items"],
                "parameters": [{"name": "item_id", "in": "path", "required": True, "schema": {"type": "integer"}}],
            }
        },
        "/admin/reset": {"post": {"operationId": "reset_admin_reset_post", "summary": "Empty it", "tags": ["admin"]}},
    },
}


class Shop(BaseHTTPRequestHandler):
    """An API as FastAPI would serve it."""

    items: list[Json]

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _answer(self, value: Any, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        number = self.path.rpartition("/")[2]
        self._answer(DOCUMENT if number == "openapi.json" else self.items[int(number)] if number else self.items)

    def do_POST(self) -> None:
        self.items.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self._answer({"id": len(self.items) - 1}, 201)


@pytest.fixture
def shop() -> Iterator[str]:
    Shop.items = [{"name": "spade"}]
    with ThreadingHTTPServer(("127.0.0.1", 0), Shop) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield str(server.server_address[1])
        server.shutdown()
        thread.join()


def test_my_api_safely(capsys: pytest.CaptureFixture[str], workplace: Path, shop: str) -> None:
    follow("tutorial-api.md", capsys, **{"9000": shop})
    assert [item["name"] for item in Shop.items] == ["spade", "rake"]
    [entry] = json.loads((workplace / ".mcp.json").read_text())["mcpServers"].values()
    assert connected(entry) == {"shop_list_items", "shop_create_item", "shop_read_item"}


@pytest.mark.parametrize("page", ["tutorial-functions.md", "tutorial-servers.md", "tutorial-api.md"])
def test_a_tutorial_says_how_long_it_takes_and_where_to_go_next(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert re.search(r"^\*(Three|Five) minutes\.", text, re.MULTILINE)
    assert "\n## Next\n" in text


def test_every_page_has_one_place_in_the_navigation() -> None:
    listed = re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))

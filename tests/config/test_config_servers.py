"""MCP servers as other products write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolgrove import Config
from toolgrove.config import ConfigError, McpServerConfig

Write = Callable[..., Path]

CLAUDE_DESKTOP = {
    "mcpServers": {
        "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/notes"]},
        "github": {"command": "docker", "args": ["run", "-i", "--rm", "image:1"], "env": {"TOKEN": "literal"}},
    }
}
CLAUDE_CODE = {
    "mcpServers": {
        "api": {"type": "http", "url": "${API_BASE}/mcp", "headers": {"Authorization": "Bearer ${API_KEY}"}},
        "db": {"type": "stdio", "command": "${userHome}/bin/db", "args": [], "env": {}, "alwaysLoad": True},
    }
}
CURSOR = {
    "mcpServers": {
        "local": {
            "command": "node",
            "cwd": "${workspaceFolder}/sub",
            "args": ["${workspaceFolder}/server.js"],
            "envFile": "${workspaceFolder}/.env",
        },
        "remote": {"url": "https://x.example/mcp", "headers": {"X-Key": "${env:KEY}"}, "auth": {"CLIENT_ID": "c"}},
    }
}
VS_CODE = {
    "inputs": [{"type": "promptString", "id": "key", "description": "Key", "password": True}],
    "servers": {
        "memory": {"type": "stdio", "command": "npx", "args": ["-y", "server-memory"], "dev": {"watch": "build/**"}},
        "gallery": {"type": "http", "url": "https://x.example/mcp", "version": "1.0", "gallery": True},
    },
}
CLINE = {
    "mcpServers": {
        "a": {"command": "x", "disabled": True, "autoApprove": ["read"], "timeout": 60},
        "b": {"type": "streamableHttp", "url": "https://x.example/mcp", "alwaysAllow": [], "disabledTools": ["rm"]},
        "c": {"type": "sse", "url": "https://x.example/sse", "networkTimeout": 30},
    }
}
OTHERS = {
    "mcpServers": {
        "windsurf": {"serverUrl": "https://x.example/mcp"},
        "gemini": {"httpUrl": "https://x.example/mcp", "timeout": 600000, "trust": False, "includeTools": ["a"]},
        "codex": {"command": "x", "enabled": False, "startup_timeout_sec": 20},
    }
}


@pytest.mark.parametrize("form", [CLAUDE_DESKTOP, CLAUDE_CODE, CURSOR, VS_CODE, CLINE, OTHERS])
def test_entries_of_other_products_are_imported_unchanged(write: Write, form: dict[str, Any]) -> None:
    config = Config.load(write(json.dumps(form), "toolgrove.json"))
    entries = form.get("mcpServers") or form["servers"]
    assert list(config.mcp_servers) == list(entries)


def load(write: Write, form: dict[str, Any]) -> dict[str, McpServerConfig]:
    return Config.load(write(json.dumps(form), "toolgrove.json")).mcp_servers


def test_what_is_not_acted_on_is_remembered_by_name(write: Write) -> None:
    config = Config.load(write(json.dumps(VS_CODE), "toolgrove.json"))
    assert (config.ignored, config.mcp_servers["memory"].ignored) == (("inputs",), ("dev",))
    assert load(write, CLINE)["b"].ignored == ("alwaysAllow",)
    assert load(write, CLINE)["b"].exclude == ("rm",)
    assert load(write, OTHERS)["gemini"].include == ("a",)
    assert load(write, CURSOR)["local"].ignored == ("envFile",)


def test_a_disabled_server_stays_in_the_file_and_out_of_the_pool(write: Write) -> None:
    config = Config.load(write(json.dumps(CLINE), "toolgrove.json"))
    assert (set(config.mcp_servers), set(config.servers)) == ({"a", "b", "c"}, {"b", "c"})
    assert load(write, OTHERS)["codex"].disabled


def test_other_spellings_of_an_address_and_milliseconds_are_understood(write: Write) -> None:
    servers = load(write, OTHERS)
    assert servers["windsurf"].url == servers["gemini"].url == "https://x.example/mcp"
    assert servers["gemini"].timeout == 600.0
    assert load(write, CLINE)["a"].timeout == 60.0


def test_foreign_references_are_translated_on_reading(write: Write, tmp_path: Path) -> None:
    code = load(write, CLAUDE_CODE)
    assert code["api"].url == "${env:API_BASE}/mcp"
    assert code["api"].headers == {"Authorization": "Bearer ${env:API_KEY}"}
    assert code["db"].command == f"{Path.home()}/bin/db"
    cursor = load(write, CURSOR)
    assert cursor["local"].args == (f"{tmp_path}/server.js",)
    assert cursor["local"].cwd == tmp_path / "sub"
    assert cursor["remote"].headers == {"X-Key": "${env:KEY}"}


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        (
            "${input:api-key}",
            "asks a person at VS Code, and nobody sits here; write ${env:API_KEY} and set that variable",
        ),
        ("${KEY:-none}", "${KEY:-…} has a default, which is not supported; write ${env:KEY} and set it"),
        ("${evn:KEY}", "${evn:…} is not known; write ${env:NAME}, ${file:path} or ${keyring:name}"),
        ("${env:}", "${env:} names nothing after the colon"),
    ],
)
def test_a_reference_that_leads_nowhere_says_what_to_write(write: Write, reference: str, told: str) -> None:
    form = {"mcpServers": {"a": {"command": "x", "env": {"KEY": reference}}}}
    with pytest.raises(ConfigError, match=r"mcpServers\.a\.env\.KEY: ") as caught:
        load(write, form)
    assert told in str(caught.value)


@pytest.mark.parametrize("text", ["$HOME", "${1}", "${}", "cost: $5", "{name}"])
def test_other_text_stays_as_it_is(write: Write, text: str) -> None:
    assert load(write, {"mcpServers": {"a": {"command": "sh", "args": ["-c", text]}}})["a"].args == ("-c", text)


def test_numbers_among_the_arguments_need_no_quotes(write: Write) -> None:
    config = Config.load(write("mcpServers: {a: {command: x, args: [--port, 3000], env: {PORT: 3000}}}"))
    assert (config.mcp_servers["a"].args, config.mcp_servers["a"].env) == (("--port", "3000"), {"PORT": "3000"})


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"servers": {}, "mcpServers": {}}, "'servers' is another name of 'mcpServers'; keep one of them"),
        ({"mcpServers": {"workspace": {"command": "x"}}}, "'workspace' is the name of a built-in source"),
        (
            {"mcpServers": {"shop": {"command": "x"}}, "httpTools": {"shop": {"url": "https://x.example"}}},
            "'shop' stands in mcpServers and in httpTools; rename one of them",
        ),
        ({"mcpServers": {"a" * 65: {"command": "x"}}}, "1 to 64 of"),
        ({"mcpServers": {"": {"command": "x"}}}, "1 to 64 of"),
        ({"agents": {"a/b": {}}}, "'a_b' would do"),
        ({"agents": {"ä\n": {}}}, "1 to 64 of"),
        ({"httpTools": {"a b": {"url": "https://x.example"}}}, "'a_b' would do"),
        ({"mcpServers": {"a": {"command": "x", "cwd": "${env:X}"}}}, "a folder is no secret; write the path"),
        ({"mcpServers": {"a": {}}}, "name a command (stdio) or a url (HTTP)"),
        ({"mcpServers": {"a": {"command": "x", "type": "carrier pigeon"}}}, "must be 'stdio', 'http'"),
        ({"mcpServers": {"a": {"command": "x", "oauth": {}}}}, "oauth is for a server with a url"),
        (
            {"mcpServers": {"a": {"url": "https://x", "oauth": {}, "headers": {"authorization": "Bearer x"}}}},
            "oauth and a header Authorization exclude each other",
        ),
        ({"mcpServers": {"a": {"url": "https://x", "oauth": {"clientID": "x"}}}}, "did you mean 'clientId'?"),
        ({"mcpServers": {"a": {"url": "https://x", "oauth": {"clientSecret": "x"}}}}, "belongs to a clientId"),
        ({"mcpServers": {"a": {"url": "https://x", "oauth": {"grant": "client_credentials"}}}}, "needs clientId and"),
        (
            {"mcpServers": {"a": {"url": "https://x", "oauth": {"clientMetadataUrl": "http://x/y"}}}},
            "write an https address with a path",
        ),
        ({"mcpServers": {"a": {"command": "x", "agrs": []}}}, "mcpServers.a.agrs: unknown key; did you mean 'args'?"),
    ],
)
def test_an_entry_that_cannot_work_is_refused(write: Write, form: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write, form)
    assert told in str(caught.value)

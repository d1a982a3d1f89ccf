"""The MCP clients that we know: where each keeps its servers, and how it writes one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ServerEntry = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class McpClient:
    """A client; `project` is its file inside of a working folder, `address` its word for an HTTP server's URL.

    `typed` clients want the kind of server said; one without `address` starts servers and cannot call one.
    """

    title: str
    user: Callable[[], Path]
    project: str | None = None
    section: str = "mcpServers"
    address: str | None = "url"
    typed: bool = False
    after: str = "Restart it to see the tools."

    def started(self, command: str, arguments: list[str]) -> ServerEntry:
        """An entry for a server that the client starts itself."""
        kind = {"type": "stdio"} if self.typed else {}
        return {**kind, "command": command, "args": arguments}

    def called(self, url: str, token: str | None) -> ServerEntry:
        """An entry for a server that runs already, at its URL."""
        if self.address is None:
            raise ValueError(f"{self.title} only starts servers itself; leave --url out, and it starts the agent")
        kind = {"type": "http"} if self.typed else {}
        headers = {"headers": {"Authorization": f"Bearer {token}"}} if token is not None else {}
        return {**kind, self.address: url, **headers}

    def file(self, *, project: bool) -> Path:
        """The file to write: that of this folder, or that of the person."""
        if not project:
            return self.user()
        if self.project is None:
            raise ValueError(f"{self.title} has no file for a single project; leave --project out")
        return Path.cwd() / self.project


def _applications() -> Path:
    """Where programs of this system keep what a person has set."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


CLIENTS: Mapping[str, McpClient] = {
    "claude-desktop": McpClient(
        title="Claude Desktop",
        user=lambda: _applications() / "Claude" / "claude_desktop_config.json",
        address=None,
        after="Quit Claude Desktop and start it again to see the tools.",
    ),
    "claude-code": McpClient(
        title="Claude Code",
        user=lambda: Path.home() / ".claude.json",
        project=".mcp.json",
        typed=True,
        after="A new session of Claude Code has the tools; /mcp lists them.",
    ),
    "cursor": McpClient(title="Cursor", user=lambda: Path.home() / ".cursor" / "mcp.json", project=".cursor/mcp.json"),
    "vscode": McpClient(
        title="VS Code",
        user=lambda: _applications() / "Code" / "User" / "mcp.json",
        project=".vscode/mcp.json",
        section="servers",
        typed=True,
        after="Run 'MCP: List Servers' in VS Code to start it.",
    ),
    "windsurf": McpClient(
        title="Windsurf",
        user=lambda: Path.home() / ".codeium" / "windsurf" / "mcp_config.json",
        address="serverUrl",
        after="Refresh the MCP servers in Windsurf to see the tools.",
    ),
    "gemini-cli": McpClient(
        title="Gemini CLI",
        user=lambda: Path.home() / ".gemini" / "settings.json",
        project=".gemini/settings.json",
        address="httpUrl",
        after="A new session of Gemini CLI has the tools; /mcp lists them.",
    ),
}

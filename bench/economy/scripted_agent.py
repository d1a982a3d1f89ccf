"""An agent over MCP that follows a script, and mends what it wrote by what errors and hints say."""

from __future__ import annotations

import json
import re
from typing import Any

from mcp import Client

_ATTRIBUTE = re.compile(r"[Ww]rite (@\w+ = \S+)")
CHARS_PER_TOKEN = 4


class ScriptedAgent:
    """Counts its calls, and the tokens (characters / 4) that it sends and receives."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._offered: set[str] = set()
        self.calls = 0
        self.characters = 0
        self.version = ""

    @property
    def tokens(self) -> float:
        return self.characters / CHARS_PER_TOKEN

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that is on the list; the answer, or the error if there is one."""
        if not self._offered:
            self._offered = {one.name for one in (await self._client.list_tools()).tools}
        if tool not in self._offered:
            raise LookupError(f"{tool} is not offered")
        self.calls += 1
        self.characters += len(json.dumps({"name": tool, "arguments": arguments}))
        result = await self._client.call_tool(tool, arguments)
        told: dict[str, Any] = json.loads(result.content[0].text)  # type: ignore[union-attr]
        self.characters += len(result.content[0].text)  # type: ignore[union-attr]
        error = told.get("error", {})
        self.version = error.get("latestVersion", told.get("version", self.version))
        return told

    async def change(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Change something; a version that is missing or stale is in the error, and is sent again."""
        told = await self.call(tool, **arguments, **({"versionToken": self.version} if self.version else {}))
        if told.get("error", {}).get("code") == "conflict":
            return await self.call(tool, **arguments, versionToken=self.version)
        return told


def mended(query: str, hint: str) -> str:
    """A query as a hint says that it should be."""
    advice = _ATTRIBUTE.search(hint)
    if advice is None:
        return query
    name, _, value = advice[1].partition(" = ")
    return query.replace(f"{name[1:]} = {value}", f"{name} = {value}")

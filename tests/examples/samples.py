"""The sample modules as `make explorer` finds them, and a real client to them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from apcore import Executor, Registry
from mcp import Client

from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from mcp_text import text_of

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
EXTENSIONS = EXAMPLES / "extensions"


def discovered() -> Registry:
    registry = Registry(extensions_dir=str(EXTENSIONS))
    registry.discover()
    return registry


@asynccontextmanager
async def connected(source: Registry | Executor, era: str = "auto", **client: Any) -> AsyncIterator[Client]:
    bridge = Bridge(source, Options())
    async with bridge.running(), Client(bridge.endpoint.server, mode=era, **client) as connection:
        yield connection


def output(result: types.CallToolResult) -> Any:
    """What the module returned; the text and the structured form must agree."""
    assert not result.is_error, text_of(result)
    assert result.structured_content == json.loads(text_of(result))
    return result.structured_content


class Progress:
    """Remembers every progress notification."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float | None, str | None]] = []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.seen.append((progress, total, message))


class User:
    """Answers every question in the same way."""

    def __init__(self, action: Any, **content: Any) -> None:
        self.answer = types.ElicitResult(action=action, content=content or None)
        self.asked: list[Any] = []

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        return self.answer

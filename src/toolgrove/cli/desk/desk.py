"""Where a command's questions go: to the project in this process, or to the gateway that serves it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Protocol

from toolgrove.cli.desk.table import begin

if TYPE_CHECKING:
    from toolgrove.types import Client


class Desk(Protocol):
    """Answers what commands ask."""

    async def ask(self, what: str, client: Client | None = None, **given: Any) -> Any:
        """The answer as JSON; meanwhile the client hears of progress, and may be asked."""

    def follow(self, what: str, **given: Any) -> AsyncIterator[Any]:
        """What happens, one JSON value after another."""


class Here:
    """The project in this process, or what of it lies at rest."""

    def __init__(self, project: Any) -> None:
        self._project = project

    async def ask(self, what: str, client: Client | None = None, **given: Any) -> Any:
        """The answer of the operation itself."""
        return await begin(self._project, what, given, client or NoClient())

    async def follow(self, what: str, **given: Any) -> AsyncIterator[Any]:
        """The events of the operation itself."""
        async for event in begin(self._project, what, given, NoClient()):
            yield event


class NoClient:
    """Nobody who hears of progress or could be asked."""

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Nobody listens."""

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        """Nobody answers."""
        return None

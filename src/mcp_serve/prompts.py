"""The prompts that an endpoint offers."""

from collections.abc import Mapping
from typing import Any, Protocol

from mcp_serve.calls import User
from mcp_serve.table import Json


class NotGiven(Exception):
    """A prompt, or a suggestion for one, was not given, and why; without a `reason` there is no such prompt."""

    def __init__(self, reason: str | None = None, data: Any = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.data = data


class Prompts(Protocol):
    """The prompts to serve, in the form of the wire; may change at any time."""

    @property
    def offered(self) -> bool:
        """Whether there are any, so that clients are told to ask for them."""
        ...

    @property
    def completes(self) -> bool:
        """Whether arguments, of these or of templates of resources, can be completed."""
        ...

    async def listed(self) -> list[Json]:
        """All of them."""
        ...

    async def get(self, name: str, arguments: Mapping[str, str], user: User | None, meta: Mapping[str, Any]) -> Json:
        """The result of `prompts/get`; raises NotGiven."""
        ...

    async def complete(self, asked: Json, user: User | None, meta: Mapping[str, Any]) -> Json:
        """The result of `completion/complete` for a prompt or a template of a resource; raises NotGiven."""
        ...

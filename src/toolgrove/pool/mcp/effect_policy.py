"""What the tools of one server do, by the operator's word: a server's own hints count only where they are trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolgrove.config import McpServerConfig
from toolgrove.pool.globs import Globs
from toolgrove.types import Annotations


class EffectPolicy:
    """`changes` beats `reads`, which beats hints; without a word of somebody responsible, a tool changes something."""

    def __init__(self, server: str, config: McpServerConfig) -> None:
        self._server = server
        self._changes = Globs(config.changes)
        self._reads = Globs(config.reads)
        self._trusts_hints = config.trust_hints

    def mutates(self, own_name: str, hints: Mapping[str, Any]) -> bool:
        """Whether a tool counts as one that changes something."""
        if self._changes.match(own_name) is not None:
            return True
        if self._reads.match(own_name) is not None:
            return False
        honest = hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True
        return not (self._trusts_hints and honest)

    def reads_if(self, own_name: str) -> str:
        """The line that says that it only reads; empty where the operator has said the opposite."""
        if self._changes.match(own_name) is not None:
            return ""
        return f"mcpServers.{self._server}.reads: [{json.dumps(own_name)}]"


def told(hints: Mapping[str, Any]) -> Annotations:
    """The hints for clients: exactly as the server gave them."""
    return Annotations(
        readonly=hints.get("readOnlyHint"),
        destructive=hints.get("destructiveHint"),
        idempotent=hints.get("idempotentHint"),
        open_world=hints.get("openWorldHint"),
    )

"""What a server logs by way of the protocol: into our own log, bounded and scrubbed, and counted by level."""

from __future__ import annotations

from collections import Counter

from toolgrove.notation.json_value import compact
from toolgrove.pool.mcp.jsonrpc import Message
from toolgrove.pool.mcp.stderr import MAX_LINE, ErrorOutput
from toolgrove.pool.secrets import Secrets
from toolgrove.types import LOG_LEVELS, Clock


class ServerLog:
    """Takes `notifications/message`; its words are a stranger's."""

    def __init__(self, server: str, secrets: Secrets, clock: Clock) -> None:
        self.counts: Counter[str] = Counter()
        self._secrets = secrets
        self._out = ErrorOutput(server, secrets, clock)

    def take(self, params: Message) -> None:
        """Count a message, and log it as one line."""
        level, data = params.get("level"), params.get("data")
        if level not in LOG_LEVELS:
            return
        self.counts[level] += 1
        text = data if isinstance(data, str) else compact(data)
        line = " ".join(self._secrets.beginning(text, MAX_LINE).split())
        self._out.feed(f"[{level}] {line}\n".encode())

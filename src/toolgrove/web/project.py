"""The project behind the gateway, as far as the web needs to know it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from toolgrove.agent import Agent
from toolgrove.config import Config
from toolgrove.events import Listener
from toolgrove.pool.pool import Pool
from toolgrove.pool.secrets import Secrets
from toolgrove.store.approvals import Inbox
from toolgrove.store.audit_log import AuditLog
from toolgrove.store.pins import Pins
from toolgrove.store.tokens import Tokens
from toolgrove.types import Clock


class Project(Protocol):
    """A grove."""

    config: Config
    pool: Pool
    approvals: Inbox
    pins: Pins
    tokens: Tokens
    secrets: Secrets
    clock: Clock

    @property
    def audit_log(self) -> AuditLog: ...

    @property
    def healthy(self) -> bool: ...

    async def agent(self, name: str, *, session: str | None = None) -> Agent: ...

    def listen(self, listener: Listener) -> None: ...

    async def note(self, operation: str, *, targets: Sequence[str], error: Mapping[str, Any]) -> None: ...


def agent_names(project: Project) -> Collection[str]:
    """The agents that there are now."""
    agents: Mapping[str, Any] = project.config.agents
    return agents.keys()

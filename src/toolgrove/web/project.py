"""The project behind the gateway, as far as the web needs to know it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from toolgrove.agent import Agent
from toolgrove.call.inbox import Inbox
from toolgrove.call.recorder import Recorder
from toolgrove.config import Config, ConfigFile
from toolgrove.events import Event, Heard
from toolgrove.model_run import ModelRun
from toolgrove.pool.misdeeds import Misdeeds
from toolgrove.pool.pool import Pool
from toolgrove.pool.resolve import Toolset
from toolgrove.pool.secrets import Secrets
from toolgrove.store.audit import AuditLog, Proof
from toolgrove.store.journal import Extent, Trouble
from toolgrove.store.state import Handoffs, Pins, Tokens
from toolgrove.tree.account import Account
from toolgrove.types import Bounds, Clock

if TYPE_CHECKING:
    from toolgrove.server_logins import ServerLogins


class Project(Heard, Protocol):
    """What the web uses of a grove, and nothing else."""

    config: Config
    file: ConfigFile | None
    pool: Pool
    approvals: Inbox
    pins: Pins
    tokens: Tokens
    secrets: Secrets
    clock: Clock
    recorder: Recorder
    misdeeds: Misdeeds

    @property
    def server_logins(self) -> ServerLogins: ...

    @property
    def audit_log(self) -> AuditLog: ...

    @property
    def audit_key(self) -> str: ...

    async def verify(self, *, deep: bool = False) -> Proof: ...

    @property
    def troubles(self) -> tuple[Trouble, ...]: ...

    @property
    def healthy(self) -> bool: ...

    @property
    def newer_file(self) -> str | None: ...

    @property
    def question_key(self) -> bytes | None: ...

    @property
    def handoffs(self) -> Handoffs | None: ...

    async def took(self, digest: str, *, changed: bool) -> None: ...

    @property
    def limit_faults(self) -> int: ...

    @property
    def change_reruns(self) -> int: ...

    @property
    def divergences(self) -> int: ...

    @property
    def seconds_behind(self) -> float | None: ...

    @property
    def changes_behind(self) -> int | None: ...

    @property
    def open_calls(self) -> int: ...

    @property
    def unknown_calls(self) -> int: ...

    def extent(self) -> Extent | None: ...

    def account_of(self, version: str, *, agent: str, tool: str) -> Account | None: ...

    async def agent(self, name: str, *, session: str | None = None, within: tuple[Bounds, ...] = ()) -> Agent: ...

    async def model_run(self, agent: str, *, session: str | None = None) -> ModelRun: ...

    async def reload(self, config: Config) -> None: ...

    def outlook(self, config: Config, agent: str) -> Toolset: ...

    def cut_off(self) -> None: ...

    def tell(self, event: Event) -> None: ...


def agent_names(project: Project) -> Collection[str]:
    """The agents of the configuration as it is now; a reload may change them."""
    agents: Mapping[str, Any] = project.config.agents
    return agents.keys()

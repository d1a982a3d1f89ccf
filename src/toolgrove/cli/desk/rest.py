"""A project that is not opened: its state and its log, read beside whoever has them open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from toolgrove.call.inbox import Inbox
from toolgrove.cli.audit_log import log_of
from toolgrove.config import Config
from toolgrove.grove import Grove
from toolgrove.notary import notary_of
from toolgrove.pool.secrets import Secrets
from toolgrove.project_state import ProjectState
from toolgrove.store.audit import AuditLog, Place
from toolgrove.store.state import Pins, Tokens


class Kept(Protocol):
    """What is kept of a project, whether it runs or not."""

    config: Config
    pins: Pins
    approvals: Inbox
    tokens: Tokens


class AtRest:
    """What is kept of a project that nobody here runs."""

    def __init__(self, config: Config, state: ProjectState) -> None:
        self.config = config
        self.pins, self.approvals, self.tokens = state.pins, state.approvals, state.tokens


@contextmanager
def at_rest(config: Config, *, make: bool = False) -> Iterator[AtRest]:
    """The project at rest; a file is made only to `make` something, not for looking."""
    with ProjectState.of(config, make=make) as state:
        yield AtRest(config, state)


def public_key(project: Kept) -> str:
    """The public half of the key of the audit log; empty where the key is not here."""
    if isinstance(project, Grove):
        return project.audit_key
    notary = notary_of(project.config, Secrets(project.config.secrets, folder=project.config.folder))
    if notary is None:
        return ""
    notary.read()
    return notary.public


async def log_for(project: Kept, anchors: Iterable[Place] = ()) -> AuditLog:
    """The audit log of a project; of one that runs, with what people did until now."""
    if not isinstance(project, Grove):
        return log_of(project.config, anchors)
    await project.recorder.collect()
    return project.audit_log

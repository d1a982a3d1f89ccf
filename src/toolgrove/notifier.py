"""Tells a webhook that a call waits for a person; no call ever waits for the webhook."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import Any

import anyio
from anyio.abc import TaskGroup

from toolgrove.call.inbox import Inbox
from toolgrove.config import Config
from toolgrove.errors import GroveError
from toolgrove.events import ApprovalRequested, Event
from toolgrove.notation.json_value import compact
from toolgrove.notation.times import to_seconds
from toolgrove.pool.secrets import Secrets
from toolgrove.store.state import Approval
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.notify")
MOST = 100
"""How many notices may be under way; more are dropped, and the log says so."""


class Notifier:
    """Sends one notice for every call that begins to wait in this process."""

    def __init__(
        self, config: Callable[[], Config], secrets: Secrets, clock: Clock, approvals: Callable[[], Inbox]
    ) -> None:
        self._config, self._secrets, self._clock, self._approvals = config, secrets, clock, approvals
        self._tasks: TaskGroup | None = None
        self._under_way = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send notices until the project ends; those on their way are given up then."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()

    def hear(self, event: Event) -> None:
        """Take up what a person should know of."""
        if not isinstance(event, ApprovalRequested) or self._tasks is None or self._config().notify is None:
            return
        if self._under_way >= MOST:
            log.warning("%d notices are on their way already: that of %s is dropped.", MOST, event.approval_id)
            return
        self._under_way += 1
        self._tasks.start_soon(self._tell, event.approval_id)

    async def _tell(self, approval_id: str) -> None:
        try:
            await self._send(approval_id)
        except (GroveError, OSError) as problem:
            log.warning("The notice of %s was not sent: %s", approval_id, self._secrets.scrub_text(str(problem)))
        finally:
            self._under_way -= 1

    async def _send(self, approval_id: str) -> None:
        settings, inbox = self._config().notify, self._approvals()
        if settings is None:
            return
        secret = self._secrets.fill(settings.secret, field="notify.secret", user="notify")
        sender = import_module("toolgrove.webhook")  # only those who have one pay for the import of a client
        hook = sender.Webhook(settings.url, secret, now=self._clock.wall)

        async def waits() -> bool:
            with suppress(OSError):
                return (await inbox.get(approval_id)).state == "pending"
            return True

        notice = self._notice(await inbox.get(approval_id), settings.console)
        await hook.send(compact(notice).encode(), approval_id, wanted=waits)

    def _notice(self, approval: Approval, console: str | None) -> dict[str, Any]:
        """What a person needs to know to look; the arguments stay here."""
        asked = approval.request
        notice = {
            "type": "approval_requested",
            "id": approval.id,
            "project": self._config().project,
            "agent": asked.agent,
            "chain": asked.chain,
            "askedBy": asked.asked_by,
            "tool": asked.tool,
            "rule": asked.rule,
            "effect": asked.effect or None,
            "requestedAt": to_seconds(approval.requested_at),
            "expiresAt": to_seconds(approval.expires_at),
        }
        return notice | ({} if console is None else {"link": f"{console.rstrip('/')}/console#/approvals/{approval.id}"})

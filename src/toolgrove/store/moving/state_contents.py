"""What people decided, as values between two stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from toolgrove.store.moving.journal_tables import Row
from toolgrove.store.state import Approval, Deed, Login, Moment, Pin

TokenRow = tuple[str, str, float | None, float | None]
"""Hash, holder, when it was first used, when it ends."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StateContents:
    """All of it."""

    pins: tuple[Pin, ...] = ()
    met: tuple[str, ...] = ()
    approvals: tuple[Approval, ...] = ()
    tokens: tuple[TokenRow, ...] = ()
    logins: tuple[Login, ...] = ()
    deeds: tuple[tuple[int, Deed], ...] = ()

    def tables(self) -> Mapping[str, Iterator[Row]]:
        """Its rows by table; the running clock is each machine's own, so it is none of them."""
        return {
            "pins": ((asdict(pin),) for pin in self.pins),
            "met": ((server,) for server in self.met),
            "approvals": ((_told(one),) for one in self.approvals),
            "tokens": iter(self.tokens),
            "logins": ((asdict(login),) for login in self.logins),
            "deeds": ((asdict(deed),) for _, deed in self.deeds),
        }

    @property
    def is_empty(self) -> bool:
        """Whether nobody decided anything yet."""
        return not any((self.pins, self.met, self.approvals, self.tokens, self.logins, self.deeds))

    def at(self, now: Moment) -> StateContents:
        """The same for a place with another running clock: each approval is as old there as the wall clock says."""
        return replace(self, approvals=tuple(_aged(one, now) for one in self.approvals))


def _aged(approval: Approval, now: Moment) -> Approval:
    since = approval.requested_at if approval.decided_at is None else approval.decided_at
    return replace(approval, monotonic=now.monotonic - (now.wall - since))


def _told(approval: Approval) -> dict[str, object]:
    asked = {name: getattr(approval.request, name) for name in approval.request.__slots__}
    rest = {name: getattr(approval, name) for name in approval.__slots__ if name not in ("request", "monotonic")}
    return {**rest, "request": asked}

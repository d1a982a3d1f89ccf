"""The state of a process that may forget: pins, approvals, tokens, logins and deeds in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any, TypeVar

from toolgrove.errors import PinNotFound
from toolgrove.store.state.approvals import Approval, ApprovalKey, ApprovalState, ApprovalTable
from toolgrove.store.state.deeds import Deed
from toolgrove.store.state.logins import Login, login_deed
from toolgrove.store.state.pins import FIRST_USE, Pin, accepted, pin_deed, refused, seen, unseen, withdrawn
from toolgrove.store.state.tokens import made, token_deed, told_until
from toolgrove.types import Clock, SystemClock

T = TypeVar("T")


class MemoryDeeds:
    """Deeds of a process that may forget; while nobody records them, only the latest."""

    def __init__(self) -> None:
        self._deeds: deque[tuple[int, Deed]] = deque(maxlen=1_000)
        self._numbers = count(1)

    def note(self, deed: Deed) -> None:
        self._deeds.append((next(self._numbers), deed))

    def waiting(self) -> Sequence[tuple[int, Deed]]:
        return list(self._deeds)

    def recorded(self, last: int) -> None:
        """Let go of all up to this number."""
        while self._deeds and self._deeds[0][0] <= last:
            self._deeds.popleft()


class MemoryPins:
    """Pins of a process that may forget."""

    def __init__(self, clock: Clock | None = None, deeds: MemoryDeeds | None = None) -> None:
        self._clock = clock or SystemClock()
        self._deeds = deeds or MemoryDeeds()
        self._pins: dict[str, dict[str, Pin]] = {}
        self._met: set[str] = set()

    def of(self, server: str) -> Mapping[str, Pin]:
        """The pins of a server by its own tool names."""
        return dict(self._pins.get(server, {}))

    def list(self) -> Sequence[Pin]:
        """Every pin, by server and name."""
        return [self._pins[server][name] for server in sorted(self._pins) for name in sorted(self._pins[server])]

    def knows(self, server: str) -> bool:
        """Whether the server was ever met."""
        return server in self._met

    def met(self, server: str) -> None:
        """Remember that the server gave a list."""
        self._met.add(server)

    def pin(self, server: str, own_name: str, hash: str, definition: Mapping[str, Any], *, by: str = FIRST_USE) -> None:
        """Accept this very definition."""
        self._keep(
            Pin(
                server=server,
                own_name=own_name,
                hash=hash,
                definition=definition,
                pinned_at=self._clock.wall(),
                pinned_by=by,
            )
        )

    def saw(self, server: str, own_name: str, hash: str, definition: Mapping[str, Any]) -> None:
        """Keep a definition that differs from the pinned one, or is the first, until someone looks at it."""
        known = self._pins.get(server, {}).get(own_name) or unseen(server, own_name)
        self._keep(seen(known, hash, definition, self._clock.wall()))

    def withdraw(self, server: str, own_name: str) -> None:
        """Take an acceptance back that no person gave; the definition waits."""
        self._keep(withdrawn(self._get(server, own_name), self._clock.wall()))

    def accept(self, server: str, own_name: str, hash: str, *, by: str) -> Pin:
        """Pin the definition last seen, provided that it is the one with this hash."""
        now = self._clock.wall()
        pin = accepted(self._get(server, own_name), hash, by, now)
        self._keep(pin)
        self._deeds.note(pin_deed("accepted", pin, by=by, at=now))
        return pin

    def refuse(self, server: str, own_name: str, hash: str, *, by: str) -> Pin:
        """Keep the definition last seen out, provided that it is the one with this hash."""
        pin = refused(self._get(server, own_name), hash, by)
        self._keep(pin)
        self._deeds.note(pin_deed("refused", pin, by=by, at=self._clock.wall()))
        return pin

    def forget(self, server: str, own_name: str, *, by: str = "") -> None:
        """Drop a pin: the next definition waits for a person."""
        pin = self._get(server, own_name)
        self._deeds.note(pin_deed("forgotten", pin, by=by, at=self._clock.wall()))
        del self._pins[server][own_name]

    def _keep(self, pin: Pin) -> None:
        self._pins.setdefault(pin.server, {})[pin.own_name] = pin

    def _get(self, server: str, own_name: str) -> Pin:
        pin = self._pins.get(server, {}).get(own_name)
        if pin is None:
            raise PinNotFound(server=server, own_name=own_name, known=[f"{p.server}/{p.own_name}" for p in self.list()])
        return pin


class MemoryTokens:
    """Tokens of a process that may forget."""

    def __init__(self, clock: Clock | None = None, deeds: MemoryDeeds | None = None) -> None:
        self._clock = clock or SystemClock()
        self._deeds = deeds or MemoryDeeds()
        self._holders: dict[str, str] = {}
        self._expiries: dict[str, float] = {}
        self._unused: set[str] = set()

    def issue(self, holder: str, *, by: str = "", replace: bool = False, lifetime: float | None = None) -> str:
        """Make a token, shown this once; the holder's others stay good, unless it is to replace them."""
        for other in [other for other, whose in self._holders.items() if whose == holder] if replace else ():
            self.revoke(other, by=by)
        token, kept = made()
        self._holders[kept] = holder
        self._unused.add(kept)
        now = self._clock.wall()
        until = None if lifetime is None else now + lifetime
        if until is not None:
            self._expiries[kept] = until
        self._deeds.note(token_deed("made", holder, kept, by=by, at=now, **told_until(until)))
        return token

    def holders(self, *, also_expired: bool = False) -> Mapping[str, str]:
        """Whose each token is, by the hash under which it is kept; one whose time is over is nobody's."""
        now = self._clock.wall()
        return {
            kept: holder
            for kept, holder in self._holders.items()
            if also_expired or kept not in self._expiries or self._expiries[kept] > now
        }

    def expiries(self) -> Mapping[str, float]:
        """When each token is void that is so by itself, by its hash."""
        return dict(self._expiries)

    def revoke(self, kept: str, *, by: str = "") -> None:
        """Make the token with this hash void."""
        holder = self._holders.pop(kept, None)
        self._expiries.pop(kept, None)
        if holder is not None:
            self._unused.discard(kept)
            self._deeds.note(token_deed("revoked", holder, kept, by=by, at=self._clock.wall()))

    def unused(self) -> Collection[str]:
        """The hashes of those that nobody came with yet."""
        return frozenset(self._unused)

    def use(self, kept: str, *, source: str) -> None:
        """Note that somebody came with a token; only the first time counts."""
        if kept in self._unused:
            self._unused.discard(kept)
            holder, now = self._holders[kept], self._clock.wall()
            self._deeds.note(token_deed("first_used", holder, kept, by=holder, at=now, **{"from": source}))


class MemoryLogins:
    """Logins of a process that may forget."""

    def __init__(self, clock: Clock | None = None, deeds: MemoryDeeds | None = None) -> None:
        self._clock = clock or SystemClock()
        self._deeds = deeds or MemoryDeeds()
        self._logins: dict[str, Login] = {}

    def of(self, server: str) -> Login | None:
        """The login to a server, if there is one."""
        return self._logins.get(server)

    def begin(self, login: Login, *, by: str = "") -> None:
        """Keep a login that a person made, in the place of the one before."""
        self._logins[login.server] = login
        self._deeds.note(login_deed("made", login.server, by=by, at=self._clock.wall()))

    def renew(self, old: Login, new: Login) -> Login | None:
        """Put a renewed login in the place of the old one, unless that is gone; what is kept now."""
        if self._logins.get(old.server) == old:
            self._logins[old.server] = new
        return self._logins.get(old.server)

    def forget(self, server: str, *, by: str = "") -> Login | None:
        """Drop the login to a server, and give back what was dropped."""
        login = self._logins.pop(server, None)
        if login is not None:
            self._deeds.note(login_deed("forgotten", server, by=by, at=self._clock.wall()))
        return login


class MemoryApprovals:
    """Approvals of a process that may forget."""

    def __init__(self, deeds: MemoryDeeds | None = None) -> None:
        self._table = _Rows(deeds or MemoryDeeds())

    async def transact(self, work: Callable[[ApprovalTable], T]) -> T:
        """Nothing here waits, so work is whole by itself."""
        return work(self._table)

    async def look(self, work: Callable[[ApprovalTable], T]) -> T:
        """Run work that changes nothing."""
        return work(self._table)


class _Rows:
    def __init__(self, deeds: MemoryDeeds) -> None:
        self._rows: dict[str, Approval] = {}
        self.note = deeds.note

    def get(self, approval_id: str) -> Approval | None:
        return self._rows.get(approval_id)

    def of(self, key: ApprovalKey) -> Sequence[Approval]:
        return [row for row in self._rows.values() if row.request.key == key]

    def of_agent(self, agent: str, state: ApprovalState) -> Sequence[Approval]:
        return [row for row in self._rows.values() if row.request.agent == agent and row.state == state]

    def all(self) -> Sequence[Approval]:
        return list(self._rows.values())

    def put(self, approval: Approval) -> None:
        self._rows[approval.id] = approval

    def purge(self, before: float) -> None:
        self._rows = {name: row for name, row in self._rows.items() if row.expires_at >= before}

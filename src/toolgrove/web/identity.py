"""Who asks: a bearer token names an agent or the operator; nothing else that a client says does."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Container, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import anyio
from starlette.authentication import AuthCredentials, BaseUser
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_serve.calls import User
from toolgrove.store.state import OPERATOR, Tokens, hashed
from toolgrove.types import Clock
from toolgrove.web.http_json import problem, unkept
from toolgrove.web.open_addresses import OPEN
from toolgrove.web.slow_down import LONGEST, SlowDown

REREAD = 1.0


@dataclass(frozen=True, slots=True)
class Principal(BaseUser):
    """An agent, or the operator, who may look at everything and act as any agent; `token` is the hash of its own."""

    name: str
    token: str = field(default="", repr=False)
    is_operator: bool = field(init=False, compare=False, repr=False)
    """Whether it is the person who answers for the agents."""
    scopes: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """What its token is good for."""
    user: User = field(init=False, compare=False, repr=False)
    """The same to those who serve MCP."""

    def __post_init__(self) -> None:
        is_operator = self.name == OPERATOR
        scopes = ("operator",) if is_operator else ("agent",)
        for name, value in (("is_operator", is_operator), ("scopes", scopes), ("user", User(self.name, scopes))):
            object.__setattr__(self, name, value)

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def display_name(self) -> str:
        return self.name

    def may_be(self, agent: str) -> bool:
        """Whether it may call as this agent."""
        return self.is_operator or self.name == agent


Holder = Callable[[str], Principal | None]
"""Whose token it is."""


def holder_of(given: Sequence[bytes], holder: Holder) -> Principal | None:
    """Who asks, by the headers that say so: exactly one must, with a token that is good."""
    if len(given) != 1:
        return None
    token = bearer(given[0])
    return None if token is None else holder(token)


@lru_cache(maxsize=256)
def bearer(given: bytes) -> str | None:
    """The bearer token in a header; a client sends the same one again and again."""
    scheme, _, token = given.decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def source_of(scope: Scope) -> str:
    """The address that a request comes from."""
    client = scope.get("client")
    return client[0] if client else ""


class Identified:
    """Lets nobody in without a token, except to the health checks, the console's empty page and the API's reference."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        holder: Holder,
        came: Callable[[Principal, str], None],
        refused: Callable[[Scope], Awaitable[None]],
        slow_down: SlowDown,
    ) -> None:
        self._app, self._holder, self._came, self._refused, self._slow_down = app, holder, came, refused, slow_down

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (scope["path"] in OPEN and scope["method"] in ("GET", "HEAD")):
            await self._app(scope, receive, send)
            return
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        try:
            user = holder_of(given, self._holder)
        except OSError as fault:
            await unkept(fault)(scope, receive, send)
            return
        if user is None:
            await self._refuse(scope, receive, send, guessed=bool(given))
            return
        self._came(user, source_of(scope))
        scope["user"], scope["auth"] = user, AuthCredentials(user.scopes)
        await self._app(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, *, guessed: bool) -> None:
        """Answer a stranger; one who guesses tokens has to wait for it."""
        await self._refused(scope)
        pause = self._slow_down.pause(source_of(scope)) if guessed else 0.0
        if pause is None:
            wait = {"Retry-After": str(math.ceil(LONGEST))}
            refusal = problem(429, "rate_limited", "Too many wrong tokens come from this address.", headers=wait)
        else:
            await anyio.sleep(pause)
            refusal = problem(
                401,
                "unauthenticated",
                "Send 'Authorization: Bearer TOKEN' with the token of this agent, or of the operator. "
                "Tokens are shown once, at the first start; 'toolgrove tokens' makes new ones.",
                headers={"WWW-Authenticate": 'Bearer realm="toolgrove"'},
            )
        await refusal(scope, receive, send)


class Anonymous:
    """Treats everybody as the operator: on loopback, and only where the operator asked for that by name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["user"], scope["auth"] = Principal(OPERATOR), AuthCredentials(["operator"])
        await self._app(scope, receive, send)


class Lookup:
    """Looks tokens up in a copy that is at most a second old: a request must not wait for a file."""

    def __init__(self, tokens: Tokens, agents: Callable[[], Container[str]], clock: Clock) -> None:
        self._tokens, self._agents, self._clock = tokens, agents, clock
        self._known: dict[str, Principal] = {}
        self._met: dict[str, Principal] = {}
        self._unused: set[str] = set()
        self._read_at = -math.inf

    def __call__(self, token: str) -> Principal | None:
        """Whose token it is; one of an agent that the project no longer has is void."""
        if self._clock.monotonic() - self._read_at >= REREAD:
            self.reread()
        user = self._met.get(token)
        if user is None and (user := self._known.get(hashed(token))) is not None:
            self._met[token] = user
        return user if user is not None and self._is_present(user) else None

    def reread(self) -> None:
        """Take a new copy now, without waiting for the old one to age."""
        self._met = {}
        self._known = {kept: Principal(holder, kept) for kept, holder in self._tokens.holders().items()}
        self._unused = set(self._tokens.unused())
        self._read_at = self._clock.monotonic()

    def is_first(self, user: Principal) -> bool:
        """Whether its token is new, as far as the copy tells; asked again, it is not."""
        if user.token not in self._unused:
            return False
        self._unused.discard(user.token)
        return True

    def is_good(self, user: Principal) -> bool:
        """Whether the copy still has its token, and the project the agent."""
        return self._known.get(user.token) == user and self._is_present(user)

    def _is_present(self, user: Principal) -> bool:
        return user.is_operator or user.name in self._agents()

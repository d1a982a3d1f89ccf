"""Who asks: a bearer token names an agent or the operator; nothing else that a client says does."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

from starlette.authentication import AuthCredentials, BaseUser
from starlette.types import ASGIApp, Receive, Scope, Send

from toolgrove.store.tokens import OPERATOR, Tokens, hashed
from toolgrove.types import Clock
from toolgrove.web.answer import problem

OPEN = ("/", "/health", "/console", "/console/", "/api/openapi.json")
REREAD = 1.0


@dataclass(frozen=True, slots=True)
class Principal(BaseUser):
    """An agent, or the operator, who may look at everything and act as any agent; `token` is the hash of its own."""

    name: str
    token: str = field(default="", repr=False)

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def display_name(self) -> str:
        return self.name

    @property
    def is_operator(self) -> bool:
        """Whether it is the person who answers for the agents."""
        return self.name == OPERATOR

    def may_be(self, agent: str) -> bool:
        """Whether it may call as this agent."""
        return self.is_operator or self.name == agent


class Identified:
    """Lets nobody in without a token, except to the health check, the console's empty page and the API's reference."""

    def __init__(self, app: ASGIApp, holder: Callable[[str], Principal | None]) -> None:
        self._app, self._holder = app, holder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self._app(scope, receive, send)
            return
        user = self._identify([value for name, value in scope["headers"] if name == b"authorization"])
        if user is None:
            refusal = problem(
                401,
                "unauthenticated",
                "Send 'Authorization: Bearer TOKEN' with the token of this agent, or of the operator. "
                "Tokens are shown once, at the first start; 'toolgrove tokens' makes new ones.",
                headers={"WWW-Authenticate": 'Bearer realm="toolgrove"'},
            )
            await refusal(scope, receive, send)
            return
        scope["user"], scope["auth"] = user, AuthCredentials(["operator" if user.is_operator else "agent"])
        await self._app(scope, receive, send)

    def _identify(self, given: Sequence[bytes]) -> Principal | None:
        if len(given) != 1:
            return None
        scheme, _, token = given[0].decode("latin-1").partition(" ")
        return self._holder(token.strip()) if scheme.lower() == "bearer" else None


class Anonymous:
    """Takes everybody for the operator: for loopback, and only where the operator asked for it by name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["user"], scope["auth"] = Principal(OPERATOR), AuthCredentials(["operator"])
        await self._app(scope, receive, send)


class Lookup:
    """Looks tokens up, in a copy of at most a second's age: a request must not wait for a file."""

    def __init__(self, tokens: Tokens, agents: Callable[[], Container[str]], clock: Clock) -> None:
        self._tokens, self._agents, self._clock = tokens, agents, clock
        self._known: dict[str, Principal] = {}
        self._met: dict[str, Principal] = {}
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
        """Take a new copy now."""
        self._met = {}
        self._known = {kept: Principal(holder, kept) for holder, kept in self._tokens.holders().items()}
        self._read_at = self._clock.monotonic()

    def is_good(self, user: Principal) -> bool:
        """Whether the copy still has its token, and the project the agent."""
        return self._known.get(user.token) == user and self._is_present(user)

    def _is_present(self, user: Principal) -> bool:
        return user.is_operator or user.name in self._agents()

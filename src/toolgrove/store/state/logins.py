"""Our logins to MCP servers that ask for OAuth: the one state that has to be kept in clear."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from toolgrove.store.state.deeds import Deed


@dataclass(frozen=True, kw_only=True, slots=True)
class Login:
    """What an authorization server gave us for one server, and how it is renewed.

    `url` is the server's; what was given for one address is never sent to another. `client_secret` is one that the
    authorization server made for us; one from the project file is not kept here.
    """

    server: str
    url: str
    resource: str
    issuer: str
    token_endpoint: str
    revocation_endpoint: str | None = None
    client_id: str
    client_auth: str = "none"
    client_secret: str | None = field(default=None, repr=False)
    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    scope: str | None = None
    made_at: float
    expires_at: float | None = None


class Logins(Protocol):
    """At most one login for each server."""

    def of(self, server: str) -> Login | None:
        """The login to a server, if there is one."""

    def begin(self, login: Login, *, by: str = "") -> None:
        """Keep a login that a person made, in the place of the one before."""

    def renew(self, old: Login, new: Login) -> Login | None:
        """Put a renewed login in the place of the old one, unless that is gone; what is kept now."""

    def forget(self, server: str, *, by: str = "") -> Login | None:
        """Drop the login to a server, and give back what was dropped."""


def login_deed(verb: str, server: str, *, by: str, at: float) -> Deed:
    """What was done with a login; nothing of its content is told."""
    return Deed(kind="token", operation=f"login.{verb}", at=at, by=by, targets=(server,))

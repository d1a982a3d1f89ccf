"""A person's login from a terminal: a browser opens, and comes back to a port of this machine."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from toolgrove.pool.mcp.faults import Misconfigured
from toolgrove.pool.mcp.oauth.attempt import begin
from toolgrove.pool.mcp.oauth.callback import Callback, listening, redirect_to
from toolgrove.pool.mcp.oauth.target import LoginTarget
from toolgrove.store.state import Login
from toolgrove.types import Clock


async def log_in(
    target: LoginTarget,
    *,
    scope: str | None,
    before: Login | None,
    clock: Clock,
    show: Callable[[str], None],
    patience: float,
) -> Login:
    """Log in to a server; `show` gets the address that the person opens. A Fault says what went wrong."""
    async with listening() as (port, waiting):
        attempt = await begin(target, redirect_to(port), clock=clock, scope=scope, before=before)
        callback = Callback(attempt)
        waiting.append(callback)
        show(attempt.question)
        with anyio.move_on_after(patience):
            return await attempt.login(await callback.given())
    raise Misconfigured(f"was not logged in to within {patience:g} s: nobody came back from the browser")

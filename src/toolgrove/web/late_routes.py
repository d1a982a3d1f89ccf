"""Routes that are made when a request first needs them: to import what they answer takes longer than to list tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Lock

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send


class LateRoutes:
    """A list of routes that is empty until it is loaded."""

    def __init__(self, make: Callable[[], list[BaseRoute]]) -> None:
        self.routes: list[BaseRoute] = []
        self._make, self._making = make, Lock()

    def load(self) -> None:
        """Make the routes; takes a while the first time."""
        with self._making:
            if not self.routes:
                self.routes.extend(self._make())


class Routed:
    """Middleware: has the routes made aside, so that others are answered meanwhile."""

    def __init__(self, app: ASGIApp, late: LateRoutes) -> None:
        self._app, self._late = app, late

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._late.routes:
            await asyncio.to_thread(self._late.load)
        await self._app(scope, receive, send)

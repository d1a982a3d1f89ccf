"""`/health`: whether the server runs, and how many tools it has."""

import time
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


def health(count: Callable[[], int]) -> Route:
    """The route; its uptime counts from now."""
    started = time.monotonic()

    async def answer(request: Request) -> Response:
        return JSONResponse({"status": "ok", "module_count": count(), "uptime_seconds": time.monotonic() - started})

    return Route("/health", answer)

"""Where the time of a call through us goes, by the file that holds the function."""

import cProfile
import pstats
import time
from collections import Counter
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

# The first match counts.
BUCKETS = (
    ("toolgrove: client of the upstream", ("toolgrove/pool/",)),
    ("toolgrove: gate", ("toolgrove/call/", "toolgrove/store/", "toolgrove/tree/", "jsonschema_rs", "_hashlib")),
    ("toolgrove: agent and face", ("toolgrove/",)),
    ("bridge (apcore_mcp)", ("apcore_mcp/",)),
    ("mcp SDK", ("/mcp/", "/mcp_types/")),
    ("pydantic", ("pydantic",)),
    ("h11, towards upstreams", ("/h11/",)),
    ("uvicorn, starlette", ("/uvicorn/", "/starlette/", "/sse_starlette/")),
    ("anyio", ("/anyio/",)),
    ("json", ("/json/", "_json")),
    ("asyncio, sockets", ("asyncio", "selectors", "socket", "_contextvars")),
)


class Profile:
    """Two GETs begin and end a profile; the second answers with the seconds of each bucket."""

    def __init__(self) -> None:
        self._running: cProfile.Profile | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: Any = {}
        if self._running is None:
            self._running = cProfile.Profile(time.thread_time)  # not the clock: others may have the CPU meanwhile
            self._running.enable()
        else:
            self._running.disable()
            answer = buckets(self._running)
            self._running = None
        await JSONResponse(answer)(scope, receive, send)


def buckets(profile: cProfile.Profile) -> dict[str, float]:
    """Seconds of own time by bucket; waiting for work is not counted."""
    spent: Counter[str] = Counter()
    stats: Any = pstats.Stats(profile)
    for (file, _, function), (_, _, own, *_) in stats.stats.items():
        where = f"{file} {function}"
        if "epoll" not in where:
            spent[next((name for name, marks in BUCKETS if any(mark in where for mark in marks)), "other")] += own
    return dict(spent.most_common())

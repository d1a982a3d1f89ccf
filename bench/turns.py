"""How long one turn of the event loop takes at most, while something large passes: nobody else is served meanwhile.

A turn is measured in CPU of the loop's own thread, since on a shared machine others may have the core in between.
"""

import asyncio
import contextlib
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer

from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from bench.modules import registry_of_size
from bench.wire import ERAS, Connection, WrongAnswer, listing, message_of
from mcp_serve.http_server import listen, run_http
from mcp_serve.signals import Stop
from toolgrove import Config, Grove

SECRET, KEY = "BENCH_SECRET", "a-secret-of-the-bench"
MEBIBYTE = json.dumps({"text": "not a secret, " * (2**20 // 14)}).encode()


class Turns:
    """The longest turn of the loop while it is entered, in milliseconds."""

    longest = 0.0

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch())
        await asyncio.sleep(0)
        try:
            yield
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        while True:
            begun = time.thread_time()
            await asyncio.sleep(0)
            self.longest = max(self.longest, (time.thread_time() - begun) * 1000)


def longest_of_lists(tools: int) -> dict[str, float]:
    """Of the first and the second `tools/list` of so many tools, by era."""
    return asyncio.run(_listed(tools))


async def _listed(tools: int) -> dict[str, float]:
    bridge = Bridge(registry_of_size(tools), Options(transport="streamable-http"))
    app, stop, turns = bridge.app(), Stop(), {era: Turns() for era in ERAS}
    with listen("127.0.0.1", 0) as listening:
        port: int = listening.getsockname()[1]
        async with app.router.lifespan_context(app):
            serving = asyncio.create_task(run_http(app, bridge.endpoint.drain, listening, stop, enter=bridge.enter))
            for era, watching in turns.items():
                with contextlib.closing(await asyncio.to_thread(Connection, port, "/mcp", era)) as one:
                    async with watching.watched():
                        await asyncio.to_thread(_ask, one, era)
            stop.set()
            await serving
    return {era: watching.longest for era, watching in turns.items()}


def _ask(one: Connection, era: str) -> None:
    for _ in range(2):
        asked = listing(era)
        answer = message_of(*one.ask(asked))
        if "tools" not in answer.get("result", {}):
            raise WrongAnswer(str(answer)[:300])


def longest_of_scrubbing() -> float:
    """Of calls of an HTTP tool that answers 1 MiB of text, while a secret is known."""
    os.environ[SECRET] = KEY
    return asyncio.run(_scrubbed())


async def _scrubbed() -> float:
    turns = Turns()
    with _large() as port:
        schema = {"type": "object", "properties": {}}
        tool = {
            "url": f"http://127.0.0.1:{port}/",
            "inputSchema": schema,
            "headers": {"X-Key": f"${{env:{SECRET}}}"},
            "allowPrivate": True,
            "maxBytes": 2**22,
        }
        project = {"httpTools": {"large": tool}, "agents": {"a": {"role": "editor", "tools": ["large"]}}}
        async with Grove(Config.model_validate(project)) as grove:
            agent = await grove.agent("a")
            call = partial(agent.call, "large", {})
            await call()
            async with turns.watched():
                for _ in range(3):
                    if "error" in (answer := await call()):
                        raise RuntimeError(str(answer)[:300])
    return turns.longest


@contextlib.contextmanager
def _large() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), _Large)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Large(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(MEBIBYTE)))
        self.end_headers()
        self.wfile.write(MEBIBYTE)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

"""Two replicas of a project behind a load balancer, each a process of its own."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2

from e2e.servers import Address
from ports import free_port
from services.haproxy import HAProxy
from toolgrove.store.state import OPERATOR
from waiting import DEADLINE, eventually, wait_until
from web.gateway import Agent, Gateway, started

NAMES = ("one", "two")
KEY = "a key that all replicas have"


class Replica:
    """One of them; it keeps its port and its folder from start to start."""

    def __init__(self, name: str, folder: Path, config: dict[str, Any], database: int) -> None:
        self.name = name
        self.port = free_port()
        self._folder, self._config = folder / name, config
        self._environ = {"GROVE_AUDIT_KEY": KEY, "GROVE_DB": f"127.0.0.1:{database}"}
        self._running = ExitStack()
        self.source: Path | None = None
        """The packages that it runs from the next start on; ours unless told."""
        self.gateway: Gateway

    def start(self) -> None:
        """Run it until it answers."""
        other = {} if self.source is None else {"PYTHONPATH": str(self.source)}
        flags, environ = ("--port", str(self.port)), {**self._environ, **other}
        self.gateway = self._running.enter_context(
            started(self._folder, self._config, *flags, environ=environ, cold=self.source is not None)
        )

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.gateway.process.send_signal(number)

    async def ended(self) -> int:
        """The code that it ends with."""
        code = await anyio.to_thread.run_sync(self.gateway.process.wait, DEADLINE)
        self._running.close()
        return code

    def close(self) -> None:
        self._running.close()


class Fleet:
    """Both replicas, and HAProxy before them."""

    def __init__(self, folder: Path, config: dict[str, Any], databases: Sequence[int]) -> None:
        self.one, self.two = (Replica(name, folder, config, port) for name, port in zip(NAMES, databases, strict=True))
        self.tokens: dict[str, str] = {}
        self.haproxy: HAProxy

    @property
    def replicas(self) -> tuple[Replica, Replica]:
        return self.one, self.two

    def address(self, agent: str, replica: Replica | None = None) -> Address:
        """Where an agent's endpoint is: behind HAProxy, or at one replica."""
        return Agent(port=(replica or self.haproxy).port, agent=agent)

    @asynccontextmanager
    async def http(self, holder: str, replica: Replica | None = None) -> AsyncIterator[httpx2.AsyncClient]:
        """A client with the token of an agent or the operator, through HAProxy or at one replica."""
        token = self.tokens[OPERATOR if holder == "operator" else holder]
        base = f"http://127.0.0.1:{(replica or self.haproxy).port}"
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=DEADLINE, verify=False) as client:
            yield client

    async def ready(self, replica: Replica) -> dict[str, Any]:
        """What a replica says of itself."""
        async with self.http("operator", replica) as http:
            told: dict[str, Any] = (await http.get("/ready")).json()
            return told

    async def is_troubled_by(self, replica: Replica, trouble: str) -> bool:
        """Whether that is all that keeps a replica from its work."""
        return bool((await self.ready(replica)).get("troubles") == [trouble])

    async def until(self, replica: Replica, *, up: bool) -> None:
        """Wait until HAProxy sends requests to a replica, or no more."""
        await eventually(lambda: self.haproxy.is_up(replica.name) is up)


@contextmanager
def fleet_of(folder: Path, config: dict[str, Any], *databases: int) -> Iterator[Fleet]:
    """Both replicas, ready; each finds the database at its own port."""
    with ExitStack() as stack:
        fleet = Fleet(folder, config, databases)
        for replica in fleet.replicas:
            stack.callback(replica.close)
            replica.start()
            fleet.tokens |= replica.gateway.tokens
        fleet.haproxy = HAProxy(fleet.one.port, fleet.two.port)
        stack.callback(fleet.haproxy.close)
        wait_until(lambda: all(fleet.haproxy.is_up(replica.name) for replica in fleet.replicas))
        yield fleet

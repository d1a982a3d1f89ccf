"""What is broken while clients work, and mended again; drawn from the seed, one fault after the other.

Each kind is a function that breaks something, waits, and mends it: when it returns, nothing of it is left. What it
broke is noted in the history, so that a finding can be told beside the fault.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from random import Random

import anyio
import psycopg
from anyio import to_thread

from histories.deployment import Deployment, Replica, faketime
from histories.history import Fault, History

_HELD, _FORGOTTEN = 1.5, 8.0
"""Seconds: longer than a call takes from its claim to its record, and than a silent replica counts as there."""
_ON_DEMAND = ("failover", "forgotten")
"""What is drawn only where it is named: it loses changes, or takes long."""
Break = Callable[["FaultMaker", Replica, float], Awaitable[None]]


class FaultMaker:
    """Breaks one thing after the other until it is told to stop."""

    def __init__(
        self, deployment: Deployment, history: History, kinds: Sequence[str], *, longest: float, pause: float
    ) -> None:
        self._deployment, self._history = deployment, history
        self._kinds = [kind for kind in kinds if kind != "failover"]
        self._fails_over = "failover" in kinds
        self._longest, self._pause = longest, pause
        self._draw = Random(f"{history.seed}/faults")
        self._stopped = anyio.Event()

    def stop(self) -> None:
        """Mend what is broken, and break nothing more."""
        self._stopped.set()

    async def work(self) -> None:
        while not self._stopped.is_set():
            await self._for(self._draw.uniform(0.1, 2 * self._pause))
            if self._stopped.is_set():
                return
            if self._fails_over and len(self._history.faults) >= 1:
                self._fails_over = False
                await self.make("failover", self._deployment.replicas[0], self._draw.uniform(0.5, 1.5))
            elif self._kinds:
                kind = self._draw.choice(self._kinds)
                target = self._draw.choice(self._deployment.replicas)
                await self.make(kind, target, self._draw.uniform(0.1, self._longest))
            elif self._fails_over:
                self._history.faults.append(Fault(kind="none", target="", began=0, ended=0))

    async def make(self, kind: str, target: Replica, seconds: float) -> None:
        """One fault, from breaking to mending."""
        began = time.monotonic()
        await KINDS[kind](self, target, seconds)
        self._history.faults.append(Fault(kind=kind, target=target.name, began=began, ended=time.monotonic()))

    async def _for(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._stopped.wait()

    async def _start(self, replica: Replica, hours: int = 0) -> None:
        try:
            await to_thread.run_sync(lambda: replica.start(hours=hours))
        except AssertionError as problem:
            self._history.wrong.append(f"{replica.name} cannot start again: {str(problem)[:600]}")
            self.stop()

    # Replicas

    async def freeze(self, target: Replica, seconds: float) -> None:
        target.signal(signal.SIGSTOP)
        await self._for(seconds)
        target.signal(signal.SIGCONT)

    async def kill(self, target: Replica, seconds: float) -> None:
        await to_thread.run_sync(target.kill)
        await self._for(min(seconds, 1.0))
        await self._start(target)

    async def kill_all(self, target: Replica, seconds: float) -> None:
        for replica in self._deployment.replicas:
            await to_thread.run_sync(replica.kill)
        for replica in self._deployment.replicas:
            await self._start(replica)

    async def clock(self, target: Replica, seconds: float) -> None:
        await to_thread.run_sync(target.kill)
        await self._start(target, hours=self._draw.choice((-30, 25)))

    # The network

    async def partition(self, target: Replica, seconds: float) -> None:
        for proxy in target.proxies:
            proxy.hold()
        await self._for(seconds)
        for proxy in target.proxies:
            proxy.resume()

    async def cut(self, target: Replica, seconds: float) -> None:
        for proxy in target.proxies:
            proxy.cut()

    async def cut_at_commit(self, target: Replica, seconds: float) -> None:
        for proxy in target.proxies:
            proxy.cut_before_sending(b"COMMIT")
        await self._for(seconds)
        for proxy in target.proxies:
            proxy.cut_no_more()

    async def lost_commit(self, target: Replica, seconds: float) -> None:
        for proxy in target.proxies:
            proxy.cut_after_sending(b"COMMIT")
        await self._for(seconds)
        for proxy in target.proxies:
            proxy.cut_no_more()

    # The database

    async def database_kill(self, target: Replica, seconds: float) -> None:
        await to_thread.run_sync(self._deployment.database.kill)
        await self._for(seconds)
        await to_thread.run_sync(self._deployment.database.start)

    async def database_restart(self, target: Replica, seconds: float) -> None:
        await to_thread.run_sync(self._deployment.database.restart)

    async def database_freeze(self, target: Replica, seconds: float) -> None:
        self._deployment.database.freeze()
        await self._for(seconds)
        self._deployment.database.thaw()

    async def head_held(self, target: Replica, seconds: float) -> None:
        await to_thread.run_sync(lambda: self._hold_head(min(seconds, 1.0)))

    async def backends(self, target: Replica, seconds: float) -> None:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'toolgrove'"
        await to_thread.run_sync(lambda: self._deployment.database.ask(f"{query} AND random() < 0.5"))

    async def forgotten(self, target: Replica, seconds: float) -> None:
        """A replica stops between what it claimed and the record of that, until the others take it for gone."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(to_thread.run_sync, lambda: self._hold_head(_HELD))
            await anyio.sleep(0.9 * _HELD)
            target.signal(signal.SIGSTOP)
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'toolgrove'"
        await to_thread.run_sync(lambda: self._deployment.database.ask(query))
        await anyio.sleep(_FORGOTTEN)
        target.signal(signal.SIGCONT)

    async def failover(self, target: Replica, seconds: float) -> None:
        """To a standby that lacks what was acknowledged for some time."""
        primary, standby = self._deployment.postgres, self._deployment.standby
        assert primary is not None
        assert standby is not None
        await to_thread.run_sync(standby.stop)
        await anyio.sleep(seconds)
        await to_thread.run_sync(primary.kill)
        self._history.may_lose = True
        await to_thread.run_sync(standby.start)
        await to_thread.run_sync(standby.promote)

    def _hold_head(self, seconds: float) -> None:
        with psycopg.connect(self._deployment.database.address()) as connection, suppress(psycopg.Error):
            connection.execute("SELECT set_config('search_path', %s, false)", [self._deployment.schema])
            connection.execute("SELECT * FROM head FOR UPDATE")
            time.sleep(seconds)
            connection.rollback()


KINDS: Mapping[str, Break] = {
    "freeze": FaultMaker.freeze,
    "kill": FaultMaker.kill,
    "kill_all": FaultMaker.kill_all,
    "clock": FaultMaker.clock,
    "partition": FaultMaker.partition,
    "cut": FaultMaker.cut,
    "cut_at_commit": FaultMaker.cut_at_commit,
    "lost_commit": FaultMaker.lost_commit,
    "database_kill": FaultMaker.database_kill,
    "database_restart": FaultMaker.database_restart,
    "database_freeze": FaultMaker.database_freeze,
    "head_held": FaultMaker.head_held,
    "backends": FaultMaker.backends,
    "forgotten": FaultMaker.forgotten,
    "failover": FaultMaker.failover,
}
_ANYWHERE = ("freeze",)
_KEPT = (*_ANYWHERE, "kill", "clock")
_SHARED = tuple(kind for kind in KINDS if kind not in _ON_DEMAND)


def kinds_for(store: str) -> Sequence[str]:
    """What can be broken there; a clock only where the library for it is installed."""
    kinds = {"memory": _ANYWHERE, "sqlite": _KEPT, "postgres": _SHARED}[store]
    return [kind for kind in kinds if kind != "clock" or faketime() is not None]

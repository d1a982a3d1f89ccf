"""What is tested: one to three gateways as processes of their own, and the one store that they share.

Each replica keeps its folder, its name and its port from start to start, and finds the database through a proxy of its
own, so that it can be cut off alone. Nothing here knows how the store works: it starts processes, asks them over HTTP,
and runs the commands of an operator.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from histories import stored
from ports import free_port
from services.postgres import Postgres, Standby
from services.proxy import Proxy
from toolgrove.store.state import OPERATOR
from waiting import DEADLINE
from web.gateway import Gateway, started, toolgrove

Kind = Literal["memory", "sqlite", "postgres"]
KEY = "a key that all replicas have"
_FAKETIME = "*/faketime/libfaketimeMT.so.1"


class Replica:
    """One gateway; killed and started at will."""

    def __init__(self, name: str, folder: Path, config: dict[str, Any], proxies: Sequence[Proxy]) -> None:
        """It finds its databases behind the proxies."""
        self.name, self.port, self.proxies = name, free_port(), proxies
        hosts = ",".join(f"127.0.0.1:{proxy.port}" for proxy in proxies)
        self.folder, self._config = folder / name, config
        self.environ = {"GROVE_AUDIT_KEY": KEY, "GROVE_DB": hosts}
        self._running = ExitStack()
        self._gateway: Gateway | None = None

    @property
    def runs(self) -> bool:
        return self._gateway is not None

    @property
    def pid(self) -> int:
        assert self._gateway is not None
        return self._gateway.process.real_pid

    @property
    def log(self) -> str:
        """What it wrote to stderr, over all its starts."""
        file = self.folder / "stderr"
        return file.read_text("utf-8") if file.exists() else ""

    def start(self, *, hours: int = 0) -> dict[str, str]:
        """Run it until it answers, with a clock that is off by hours; the tokens that it made."""
        environ = self.environ | ({} if hours == 0 else _shifted(hours))
        self._gateway = self._running.enter_context(
            started(self.folder, self._config, "--port", str(self.port), environ=environ, cold=hours != 0)
        )
        return self._gateway.tokens

    def signal(self, number: int) -> None:
        assert self._gateway is not None
        self._gateway.process.send_signal(number)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        self._end()

    def stop(self) -> int:
        """End it gently; the code that it ends with."""
        self.signal(signal.SIGTERM)
        return self._end()

    def _end(self) -> int:
        assert self._gateway is not None
        code: int = self._gateway.process.wait(DEADLINE)
        self._running.close()
        self._gateway = None
        return code

    def close(self) -> None:
        self._running.close()
        self._gateway = None

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command of the operator at this replica."""
        return subprocess.run(
            toolgrove(*command, "--config", str(self.folder / "toolgrove.yaml")),
            env=os.environ | self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )


def faketime() -> Path | None:
    """The library that shifts a process's clock, where it is installed."""
    return next(iter(sorted(Path("/usr/lib").glob(_FAKETIME))), None)


def _shifted(hours: int) -> dict[str, str]:
    return {"LD_PRELOAD": str(faketime()), "FAKETIME": f"{hours:+d}h", "DONT_FAKE_MONOTONIC": "1"}


class Deployment:
    """All of them, on one store; close it."""

    def __init__(
        self,
        folder: Path,
        kind: Kind,
        agents: dict[str, Any],
        http_tools: dict[str, Any],
        *,
        replicas: int = 1,
        concurrency: str = "node",
        postgres: Postgres | None = None,
        with_standby: bool = False,
    ) -> None:
        self.kind = kind
        self._folder = folder
        self._stack = ExitStack()
        self.postgres: Postgres | None = None
        self.standby: Standby | None = None
        self.schema = ""
        if kind == "postgres":
            self._databases(postgres, with_standby)
        self._config = {
            "agents": agents,
            "httpTools": http_tools,
            "workspace": {
                "store": self._store(),
                "concurrency": concurrency,
                "payloadTypes": {"Note": {}},
                "auditKey": "${env:GROVE_AUDIT_KEY}",
            },
            "record": "none",
            "answers": {"maxTokens": 10_000_000},
            **({"rateLimits": {"store": "process"}} if kind == "postgres" else {}),
        }
        self.tokens: dict[str, str] = {}
        try:
            self.replicas = [self._replica(f"replica{number}") for number in range(replicas)]
            for replica in self.replicas:
                self.tokens |= replica.start()
        except BaseException:
            self.close()
            raise

    def _databases(self, given: Postgres | None, with_standby: bool) -> None:
        self.postgres = given or Postgres()
        if given is None:
            self._stack.callback(self.postgres.close)
            self.postgres.start()
        self.schema = self.postgres.fresh().rpartition("=")[2]
        if with_standby:
            self.standby = Standby(self.postgres)
            self._stack.callback(self.standby.close)
            self.standby.start()

    def _store(self) -> str:
        if self.kind == "postgres":
            return f"postgresql://postgres@${{env:GROVE_DB}}/postgres?schema={self.schema}"
        return "memory" if self.kind == "memory" else "sqlite:grove.db"

    def _replica(self, name: str) -> Replica:
        servers = [server for server in (self.postgres, self.standby) if server is not None]
        proxies = [self._stack.enter_context(Proxy(server.port)) for server in servers]
        replica = Replica(name, self._folder, self._config, proxies)
        self._stack.callback(replica.close)
        return replica

    def newcomer(self) -> Replica:
        """One more that has never run, with a folder of its own; of a file, the same one again."""
        if self.kind == "postgres":
            return self._replica("newcomer")
        return self.replicas[0]

    @property
    def database(self) -> Postgres:
        """The server that holds what is stored now."""
        assert self.postgres is not None
        return self.postgres if self.postgres.runs or self.standby is None else self.standby

    def rows(self) -> stored.Rows | None:
        """What the journal's tables hold; None where nothing is stored."""
        if self.kind == "postgres":
            return stored.of_postgres(self.database.address(), self.schema)
        return stored.of_sqlite(self.replicas[0].folder / "grove.db") if self.kind == "sqlite" else None

    def audit(self) -> list[dict[str, Any]]:
        """Every record of the audit log, by the operator's command."""
        done = self.replicas[0].run("audit", "export")
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return [line for line in lines if "publicKey" not in line]  # the last one names the key of the log

    def verdict(self) -> str | None:
        """What `audit verify` has against the log."""
        done = self.replicas[0].run("audit", "verify", "--json")
        if done.returncode == 0 and json.loads(done.stdout)["whole"] is True:
            return None
        return f"`audit verify` ends with {done.returncode}: {(done.stdout or done.stderr).strip()}"

    def headers(self, holder: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[OPERATOR if holder == 'operator' else holder]}"}

    def close(self) -> None:
        self._stack.close()


def agents_of(names: Sequence[str], tools: Sequence[str]) -> dict[str, Any]:
    """The same rights for all."""
    return {name: {"role": "editor", "tools": list(tools)} for name in names}

"""A private PostgreSQL on a port of its own; it trusts whoever comes by loopback, and ends with the test process."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

import psycopg

from ports import free_port
from services.programs import program
from waiting import wait_until

OWNER = "postgres"
_COMMON = ("max_connections=200", "log_min_messages=fatal")
_QUICK = ("fsync=off", "full_page_writes=off", "shared_buffers=32MB")
"""What is lost in a power cut is no matter here; a killed server still finds all that it committed."""


class Postgres:
    """Made once; `stop` in any manner, then `start` again on the same data and port."""

    def __init__(self, *settings: str) -> None:
        """Settings of its own go instead of those that make it quick."""
        self._settings = (*_COMMON, *(settings or _QUICK))
        self._bin = program("initdb").resolve().parent
        self._folder = Path(tempfile.mkdtemp(prefix="grove-pg-"))
        self._data = self._folder / "data"
        self._user = OWNER if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
        if self._user is not None:
            account = pwd.getpwnam(self._user)
            os.chown(self._folder, account.pw_uid, account.pw_gid)
        self.port = free_port()
        self._names = count(1)
        self._server: subprocess.Popen[bytes] | None = None
        self._fill()

    def _fill(self) -> None:
        """Make the data that it begins with."""
        self._run("initdb", "-D", str(self._data), "-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")

    def certify(self, certificate: Path, key: Path) -> None:
        """Have it speak TLS from the next start on."""
        for given, name in ((certificate, "server.crt"), (key, "server.key")):
            kept = self._data / name
            kept.touch(0o600)
            kept.write_bytes(given.read_bytes())
            if self._user is not None:
                shutil.chown(kept, self._user)
        self._settings = (*self._settings, "ssl=on")

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(self._command(name, arguments), capture_output=True, cwd="/", user=self._user, text=True)
        assert done.returncode == 0, done.stderr or done.stdout

    def _command(self, name: str, arguments: Sequence[str]) -> list[str]:
        return [str(self._bin / name), *arguments]

    def start(self) -> None:
        """Run the server until it takes connections."""
        settings = (
            *self._settings,
            f"port={self.port}",
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={self._folder}",
        )
        options = [part for setting in settings for part in ("-c", setting)]
        log = (self._folder / "log").open("ab")
        self._server = subprocess.Popen(
            self._command("postgres", ["-D", str(self._data), *options]),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            user=self._user,
            start_new_session=True,
        )
        log.close()
        wait_until(self.is_up)

    @property
    def pid(self) -> int:
        """The process that all others of the server belong to."""
        assert self._server is not None
        return self._server.pid

    @property
    def runs(self) -> bool:
        """Whether it was started and not ended since."""
        return self._server is not None

    def is_up(self) -> bool:
        """Whether it takes connections."""
        assert self._server is None or self._server.poll() is None, (self._folder / "log").read_text()[-2000:]
        try:
            psycopg.connect(self.address(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """kill -9 of the server and of all that work for it, at once."""
        if self._server is not None:
            self._signal_all(signal.SIGKILL)
            self._server.wait()
            self._server = None

    def stop(self) -> None:
        """End it at once, cutting every connection, as `pg_ctl -m immediate` does."""
        if self._server is not None:
            self._server.send_signal(signal.SIGQUIT)
            self._server.wait()
            self._server = None

    def freeze(self) -> None:
        """Stop it and all that work for it where they are, until `thaw`."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int) -> None:
        for one in (self.pid, *self._workers()):
            with suppress(ProcessLookupError):
                os.kill(one, number)

    def _workers(self) -> list[int]:
        return [*map(int, Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split())]

    def restart(self) -> None:
        """Cut every connection, and come back."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End it, and leave nothing behind."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def address(self, schema: str | None = None, *, user: str = OWNER, port: int | None = None) -> str:
        """How a project names it."""
        end = "" if schema is None else f"?schema={schema}"
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/postgres{end}"

    def fresh(self) -> str:
        """An address with a schema that nobody has used; it is made by whoever opens it."""
        return self.address(f"t{os.getpid()}_{next(self._names)}")

    def ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        """Run one statement as the server's owner, beside whatever is tested."""
        with psycopg.connect(self.address(), autocommit=True) as connection:
            cursor = connection.execute(query.encode(), values or None)
            return cursor.fetchall() if cursor.description else []


class Standby(Postgres):
    """A copy of another server that follows it, a moment behind, until it is promoted."""

    def __init__(self, primary: Postgres) -> None:
        """The primary runs."""
        self._primary = primary
        super().__init__()

    def _fill(self) -> None:
        source = ("-h", "127.0.0.1", "-p", str(self._primary.port), "-U", OWNER)
        self._run("pg_basebackup", *source, "-D", str(self._data), "-R", "-X", "stream", "-c", "fast", "--no-sync")

    def promote(self) -> None:
        """Follow nobody any more, and take changes."""
        self._run("pg_ctl", "promote", "-w", "-D", str(self._data))

"""A server as our child process: gets only the environment it was given, and does not outlive us.

Its group is ended with it. What left the group is found by a mark in its environment. On Linux the kernel ends the
child when we die, be it by SIGKILL; one that is sandboxed ends with bubblewrap, and so does all that it started.

It stands on asyncio itself: an answer is handled in the very turn of the loop that reads it.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import anyio
import anyio.to_thread

from toolgrove.pool.mcp.faults import Misconfigured, Unsent
from toolgrove.pool.mcp.jsonrpc import MAX_MESSAGE
from toolgrove.pool.offspring import MARK, Offspring, end_marked

_POSIX = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
_WINDOWS = (
    *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
    *("PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE"),
)
INHERITED = _WINDOWS if sys.platform == "win32" else _POSIX
EOF_GRACE = 1.0
TERM_GRACE = 0.7
KILL_GRACE = 0.5
_SETTLING = 1.0
_POLL = 0.02
_PR_SET_PDEATHSIG = 1
_SIGKILL = 9
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None  # looked up now, not in a child that just forked


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """What to start; `env` stands beside the few variables that every program needs."""

    program: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None

    def environment(self, ours: Mapping[str, str]) -> dict[str, str]:
        """The variables that the child gets: a few of ours, then its own."""
        kept = {name: value for name, value in ours.items() if name in INHERITED or name.startswith("LC_")}
        return kept | dict(self.env)


class Child(asyncio.SubprocessProtocol):
    """A running server; says what it writes, and once that it is gone."""

    def __init__(
        self,
        *,
        wrote: Callable[[bytes], None],
        complained: Callable[[bytes], None],
        gone: Callable[[str], None],
        offspring: Offspring | None = None,
    ) -> None:
        self._offspring = offspring or Offspring()
        self._mark = self._offspring.mark()
        self._wrote = wrote
        self._complained = complained
        self._gone = gone
        self._exited = anyio.Event()
        self._silent = self._told = self._ending = False

    async def start(self, command: Command) -> None:
        """Start the program in a session of its own, so that what it starts can be ended with it."""
        if command.cwd is not None and not command.cwd.is_dir():
            raise Misconfigured("did not start: its cwd is not a folder")
        try:
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                command.program,
                *command.args,
                env=command.environment(os.environ) | {MARK: self._mark},
                cwd=command.cwd,
                start_new_session=True,
                preexec_fn=_tied_to(os.getpid()),
            )
        except FileNotFoundError:
            raise Misconfigured("did not start: command not found") from None
        except PermissionError:
            raise Misconfigured("did not start: the command may not be run") from None
        except ValueError:
            raise Misconfigured("did not start: its command or environment holds a null character") from None
        except OSError as error:
            raise Misconfigured(f"did not start: {error.strerror or 'the system refused'}") from None
        self.pid = transport.get_pid()
        self._offspring.started(self.pid)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the pipes; a child can be gone again before `start` returns."""
        self._transport = cast(asyncio.SubprocessTransport, transport)

    @property
    def _input(self) -> asyncio.WriteTransport:
        return cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))

    @property
    def is_leaving(self) -> bool:
        """Whether it takes no more lines, so that `gone` will be told soon."""
        return self._exited.is_set() or self._input.is_closing()

    def write(self, line: bytes) -> None:
        """Hand it a line; it is kept until the child reads."""
        pipe = self._input
        if self.is_leaving:
            raise Unsent("is not running")
        if pipe.get_write_buffer_size() > MAX_MESSAGE:
            raise Unsent("does not read its input")
        pipe.write(line + b"\n")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Pass on what the child wrote. Its error output is always read, or it would wait in the middle of a call."""
        if fd != 1:
            self._complained(data)
        elif not self._ending:
            self._wrote(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Notice that it closed its input or output."""
        if fd == 1:
            self._silent = True
        if fd != 2 and not self._ending:
            self._look()

    def process_exited(self) -> None:
        """Notice that it exited; what it wrote last may still be in the pipe."""
        self._exited.set()
        self._look()

    def _look(self) -> None:
        if self._silent and self._exited.is_set():
            self._tell()
        else:  # the other sign may never come: a grandchild can hold the pipe, a child can live on in silence
            asyncio.get_running_loop().call_later(_SETTLING, self._tell)

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            self._gone(self._ending_words())

    def _ending_words(self) -> str:
        code = self._transport.get_returncode()
        if code is None:
            return "closed its output" if self._silent else "closed its input"
        return f"was ended by signal {-code}" if code < 0 else f"exited with status {code}"

    async def end(self, *, politely: bool) -> None:
        """End it and all that it started; politely, it is first asked and then told, for two seconds in all."""
        self._ending = True
        self._input.close()
        if not (politely and await self._leaves()):
            self._signal("SIGKILL")
            await self._is_gone_within(KILL_GRACE)  # nothing can refuse; this only sees to it
        await anyio.to_thread.run_sync(end_marked, self._mark)
        self._transport.close()

    async def _leaves(self) -> bool:
        if await self._is_gone_within(self._offspring.patience(EOF_GRACE, 1 / 2)):
            return True
        self._signal("SIGTERM")
        return await self._is_gone_within(self._offspring.patience(TERM_GRACE, 2 / 3))

    async def _is_gone_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._exited.wait()
            while self._group_lives():  # noqa: ASYNC110 (nobody tells when a grandchild is gone)
                await anyio.sleep(_POLL)
            return True
        return False

    def _group_lives(self) -> bool:
        if sys.platform == "win32":
            return False
        try:
            os.killpg(self.pid, 0)
        except OSError:
            return False
        return True

    def _signal(self, name: str) -> None:
        if sys.platform == "win32":
            self._transport.kill()
            return
        try:
            os.killpg(self.pid, signal.Signals[name])
        except OSError:
            return


def _tied_to(parent: int) -> Callable[[], None] | None:
    """What a new child does first: asks the kernel to end it when the thread that started it ends, hence with us.

    It runs between fork and exec, where another thread's lock may be held for ever: it calls the kernel, nothing else.
    """
    prctl = _prctl
    if prctl is None:
        return None

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        if os.getppid() != parent:  # we died in between
            os._exit(1)

    return tie

"""`python -m warm.server DESCRIPTOR`: a Python that has imported what our programs need, and forks one per request.

A child goes on as an interpreter does that was started with these arguments: its own streams, directory, environment,
signals and `__main__`. It ends when its launcher does, and the server when its standard input ends.
"""

import gc
import importlib
import importlib.util
import io
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import types
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

PACKAGES = ("apcore_mcp", "mcp_serve", "toolgrove")
BESIDE = ("anyio._backends._asyncio", "mcp.server.streamable_http_manager", "uvicorn.lifespan.on", "encodings.idna")
HEEDED = {"PYTHONPATH", "PYTHONUNBUFFERED"}
LEFT_OUT = ("toolgrove.runners.adk",)  # an extra that takes longer to import than all the others


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What a launcher asks for: itself, as `python` with these arguments."""

    arguments: list[str]
    directory: str
    environment: dict[str, str]
    leads_session: bool
    streams: list[int]


def import_everything() -> None:
    for package in filter(importlib.util.find_spec, PACKAGES):
        found = pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
        for module in found:
            if not module.name.endswith("__main__") and module.name not in LEFT_OUT:
                importlib.import_module(module.name)
    for name in BESIDE:
        importlib.import_module(name)


class Server:
    """Forks a child for each request of a launcher, tells the launcher how it ended, and lets it not outlive that."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._waking, self._woken = socket.socketpair()
        self._children: dict[int, socket.socket] = {}
        self._watched = selectors.DefaultSelector()
        self._watched.register(0, selectors.EVENT_READ, self._end)
        self._watched.register(self._waking, selectors.EVENT_READ, self._report)
        self._watched.register(listening, selectors.EVENT_READ, self._admit)

    def serve(self) -> Request:
        """Returns in a child only, with what it was asked to be."""
        self._woken.setblocking(False)
        signal.set_wakeup_fd(self._woken.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            for key, _ in self._watched.select():
                request: Request | None = key.data()
                if request is not None:
                    self._close()
                    return request

    def _admit(self) -> None:
        launcher, _ = self._listening.accept()
        self._watched.register(launcher, selectors.EVENT_READ, partial(self._fork, launcher))

    def _fork(self, launcher: socket.socket) -> Request | None:
        content, streams, _, _ = socket.recv_fds(launcher, 2**20, 3)
        if not content:
            self._dismiss(launcher)
            return None
        if not (child := os.fork()):
            return Request(streams=streams, **json.loads(content))
        for stream in streams:
            os.close(stream)
        self._children[child] = launcher
        self._watched.modify(launcher, selectors.EVENT_READ, partial(self._dismiss, launcher, child))
        _tell(launcher, child)
        return None

    def _dismiss(self, launcher: socket.socket, child: int | None = None) -> None:
        """A launcher has ended, after its child or before it."""
        self._watched.unregister(launcher)
        launcher.close()
        if child in self._children:
            self._kill(child)
            del self._children[child]

    def _report(self) -> None:
        """Tell the launchers whose children have ended."""
        self._waking.recv(4096)
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if launcher := self._children.pop(ended[0], None):
                    _tell(launcher, os.waitstatus_to_exitcode(ended[1]))

    def _end(self) -> None:
        for child in self._children:
            self._kill(child)
        os._exit(0)

    def _kill(self, child: int) -> None:
        """End it, with all that it started if it has a session of its own, as its launcher has."""
        if os.getpgid(child) == child:
            os.killpg(child, signal.SIGKILL)
        else:
            os.kill(child, signal.SIGKILL)

    def _close(self) -> None:
        """Leave nothing of the server open in a child."""
        signal.set_wakeup_fd(-1)
        for key in self._watched.get_map().values():
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._watched.close()
        self._woken.close()


def _tell(launcher: socket.socket, number: int) -> None:
    with suppress(OSError):  # it has been killed: its end is noticed next
        launcher.send(b"%d" % number)


def become(request: Request, search_path: list[str]) -> None:
    """Be the Python that was asked for."""
    for number, stream in enumerate(request.streams):
        os.dup2(stream, number)
        os.close(stream)
    if request.leads_session:
        os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request.directory)
    _take_environment(request.environment)
    _open_streams()
    added = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    match request.arguments:
        case ["-m", name, *rest]:
            sys.path[:] = [os.getcwd(), *added, *search_path]
            sys.argv = [name, *rest]
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        case ["-c", code, *rest]:
            sys.path[:] = ["", *added, *search_path]
            sys.argv = ["-c", *rest]
            sys.modules["__main__"] = main = types.ModuleType("__main__")
            exec(compile(code, "<string>", "exec"), main.__dict__)
        case [script, *rest]:
            sys.path[:] = [os.path.dirname(os.path.realpath(script)), *added, *search_path]
            sys.argv = [script, *rest]
            runpy.run_path(script, run_name="__main__")


def _take_environment(wanted: dict[str, str]) -> None:
    other = {name for name, _ in wanted.items() - os.environ.items() if name.startswith("PYTHON")} - HEEDED
    os.environ.clear()
    os.environ.update(wanted)
    if other:
        sys.exit(f"a warm Python cannot heed {', '.join(sorted(other))} any more: start a cold one")


def _open_streams() -> None:
    """The text streams as a starting interpreter makes them."""
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        ours = getattr(sys, name)
        raw = open(number, f"{mode}b", buffering=0 if unbuffered and mode == "w" else -1, closefd=False)  # noqa: SIM115
        lines = not unbuffered and (name == "stderr" or raw.isatty())
        stream = io.TextIOWrapper(raw, ours.encoding, ours.errors, None, lines, unbuffered)
        stream.mode = mode  # type: ignore[misc]
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _search_path() -> list[str]:
    """Where any Python of this environment looks: without what variables and the start of this server added."""
    added = {os.getcwd(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    return [path for path in sys.path if path not in added]


if __name__ == "__main__":
    import_everything()
    gc.collect()
    gc.freeze()  # or each child's collector would touch, and so copy, all that is shared
    become(Server(socket.socket(fileno=int(sys.argv[1]))).serve(), _search_path())

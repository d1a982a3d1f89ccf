"""A TCP proxy that breaks connections on demand: late, silent, reset, or cut after some bytes."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from faults.listener import Work, listening


def _abort_on_close(one: socket.socket) -> None:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _end_reading(one: socket.socket) -> None:
    one.shutdown(socket.SHUT_RD)


@dataclass(kw_only=True)
class Proxy:
    """Passes bytes on; what is set here holds for the bytes that come from then on."""

    target: int
    latency: float = 0.0
    blackhole: bool = False
    cut_after: int | None = None
    port: int = 0
    _open: set[socket.socket] = field(default_factory=set)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def serving(self) -> Iterator[Proxy]:
        with listening(self._begin, self._end) as self.port:
            yield self

    def _end(self) -> None:
        self._over.set()
        self.reset()

    def reset(self) -> None:
        """Break every connection that is open now; the threads that serve them wake up and close them."""
        broken = list(self._open)
        for change in (_abort_on_close, _end_reading):
            for one in broken:
                with contextlib.suppress(OSError):
                    change(one)

    def _begin(self, near: socket.socket) -> list[Work]:
        far = socket.create_connection(("127.0.0.1", self.target))
        self._open |= {near, far}
        return [partial(self._pump, near, far, False), partial(self._pump, far, near, True)]

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with source, sink:
            with contextlib.suppress(OSError):
                self._pass_on(source, sink, answers)
            # The other direction must not wait on a closed socket.
            for one in (source, sink):
                self._open.discard(one)
                with contextlib.suppress(OSError):
                    _end_reading(one)

    def _pass_on(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        while data := source.recv(65_536):
            if self._over.wait(self.latency) or (self.blackhole and self._over.wait()):
                break
            if answers and self.cut_after is not None:
                sink.sendall(data[: self.cut_after])
                break
            sink.sendall(data)

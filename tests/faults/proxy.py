"""A TCP proxy that breaks connections on demand: late, silent, reset, or cut after some bytes."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


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
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.port = listening.getsockname()[1]
            accepting = threading.Thread(target=self._accept, args=(listening,), daemon=True)
            accepting.start()
            try:
                yield self
            finally:
                self._over.set()
                listening.shutdown(socket.SHUT_RDWR)
                self.reset()
                accepting.join(10)

    def reset(self) -> None:
        """Break every connection that is open now; the threads that serve them wake up and close them."""
        broken = list(self._open)
        for change in (_abort_on_close, _end_reading):
            for one in broken:
                with contextlib.suppress(OSError):
                    change(one)

    def _accept(self, listening: socket.socket) -> None:
        threads = []
        with contextlib.suppress(OSError):
            while True:
                near, _ = listening.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
                self._open |= {near, far}
                for source, sink in ((near, far), (far, near)):
                    threads.append(threading.Thread(target=self._pump, args=(source, sink, near is sink), daemon=True))
                    threads[-1].start()
        for thread in threads:
            thread.join(10)

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

"""A TCP proxy that can stop passing, as a broken network does: connections stay open, and nothing comes through."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import suppress


class Proxy:
    """Passes connections on to a port of this machine; `cut` ends them, `hold` keeps them and passes nothing."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._flows = threading.Event()
        self._flows.set()
        self._ended = False
        self._open: set[socket.socket] = set()
        self._cut_before: bytes | None = None
        self._cut_at: bytes | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self) -> None:
        """Pass nothing, in neither direction, until `resume`."""
        self._flows.clear()

    def resume(self) -> None:
        """Pass what was held, and what comes."""
        self._flows.set()

    def cut(self) -> None:
        """End every connection at once."""
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def lead(self, port: int) -> None:
        """Lead elsewhere from now on, as a changed name does; what is open ends."""
        self._target = port
        self.cut()

    def cut_after_sending(self, text: bytes) -> None:
        """End the connection that sends this text, once it has gone on to the server, before any answer comes back."""
        self._cut_before = text

    def cut_before_sending(self, text: bytes) -> None:
        """End the connection that sends this text, before the server gets any of it."""
        self._cut_at = text

    def cut_no_more(self) -> None:
        """Let pass what would have been cut next."""
        self._cut_before = self._cut_at = None

    def close(self) -> None:
        """End it all."""
        self._ended = True
        self._flows.set()
        self._listener.close()
        self.cut()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        self._flows.wait()
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self._target)) as server:
            self._open |= {client, server}
            try:
                while not self._ended and self._pump(client, server):
                    pass
            finally:
                self._open -= {client, server}

    def _pump(self, client: socket.socket, server: socket.socket) -> bool:
        ready, _, _ = select.select([client, server], [], [], 0.5)
        for one in ready:
            self._flows.wait()
            data = one.recv(65_536)
            if not data:
                return False
            if one is client and self._cut_at is not None and self._cut_at in data:
                self._cut_at = None
                return False
            other = server if one is client else client
            other.sendall(data)
            if one is client and self._cut_before is not None and self._cut_before in data:
                self._cut_before = None
                _pass_until_answered(client, server)
                return False
        return True


def _pass_until_answered(client: socket.socket, server: socket.socket) -> None:
    """Pass on what a client still sends until the server has done it all and answers; nobody hears what."""
    while server not in (ready := select.select([client, server], [], [])[0]):
        server.sendall(ready[0].recv(65_536))
    server.recv(1)

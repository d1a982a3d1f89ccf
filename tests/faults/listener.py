"""A port on the loopback whose connections are served by threads: what the fake server and the proxy stand on."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator

Work = Callable[[], None]


@contextlib.contextmanager
def listening(begin: Callable[[socket.socket], Iterable[Work]], end: Work) -> Iterator[int]:
    """The port; each piece of work for a connection has a thread, and `end` wakes up whoever waits in one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=_accept, args=(listener, begin), daemon=True)
        accepting.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            end()
            accepting.join(10)


def _accept(listener: socket.socket, begin: Callable[[socket.socket], Iterable[Work]]) -> None:
    threads: list[threading.Thread] = []
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            for work in begin(connection):
                threads.append(threading.Thread(target=work, daemon=True))
                threads[-1].start()
    for thread in threads:
        thread.join(10)

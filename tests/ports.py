"""Ports for servers that have to be told theirs."""

import socket
from collections import deque

_KEPT = 200
_reservations: deque[socket.socket] = deque()


def free_port(host: str = "127.0.0.1") -> int:
    """A port that the kernel gives to nobody else while this process keeps it.

    It is bound but nobody listens there, so a server that names it (with SO_REUSEADDR, as servers do) still gets it.
    """
    kept = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind((host, 0))
    _reservations.append(kept)
    if len(_reservations) > _KEPT:
        _reservations.popleft().close()
    return int(kept.getsockname()[1])

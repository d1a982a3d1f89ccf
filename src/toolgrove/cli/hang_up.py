"""Hearing that whoever talks to us over stdin is gone, before anything of it is read."""

from __future__ import annotations

import select
import sys

import anyio

_LOOK = 0.1


async def hang_up() -> bool:
    """Wait until the other end of stdin is closed; whether something was said before that nobody has read yet."""
    while not _is_closed():  # noqa: ASYNC110 (nobody would set an event)
        await anyio.sleep(_LOOK)
    return _is_unread()


if sys.platform == "win32":

    def _is_closed() -> bool:  # only reading would tell
        return False

    def _is_unread() -> bool:
        return False

else:
    import fcntl
    import struct
    import termios

    def _is_closed() -> bool:
        poll = select.poll()
        poll.register(0, getattr(select, "POLLRDHUP", 0))  # a socket may be closed in one direction alone
        return any(events & ~select.POLLIN for _, events in poll.poll(0))

    def _is_unread() -> bool:
        try:
            (waiting,) = struct.unpack("i", fcntl.ioctl(0, termios.FIONREAD, bytes(4)))
        except OSError:
            return False
        return bool(waiting)

"""How a long piece of work in a thread gives way to the event loop."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SOON = 0.001
_NEVER = 2**31 - 1
_MANY = 15
_at_work = 0
_usual: tuple[float, tuple[int, int, int]] = (0.0, (0, 0, 0))


@contextmanager
def giving_way() -> Iterator[None]:
    """Let threads hand over sooner while a long piece of work lasts, and let no full garbage collection stop them all.

    What was made in great number is not looked at again afterwards: a full collection would take longer than a call
    can wait. Little of it needs one, since a tree takes its own circles apart. Only from the thread of the event loop.
    """
    global _at_work, _usual
    if not _at_work:
        _usual = sys.getswitchinterval(), gc.get_threshold()
        sys.setswitchinterval(min(_SOON, _usual[0]))
        gc.set_threshold(*_usual[1][:2], _NEVER)
    _at_work += 1
    try:
        yield
    finally:
        _at_work -= 1
        if not _at_work:
            sys.setswitchinterval(_usual[0])
            if gc.get_count()[2] > _MANY:  # young collections since the last full one, of some thousand objects each
                gc.freeze()
            gc.set_threshold(*_usual[1])

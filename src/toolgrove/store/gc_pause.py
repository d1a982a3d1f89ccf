"""Python's cycle collector, kept from searching a large workspace again and again: while it is read, and afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """No collection until the end of the block."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def settled_collector() -> Iterator[None]:
    """What there is now is not searched until the end of the block, and what comes is searched less often."""
    often = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(10_000, *often[1:])
    try:
        yield
    finally:
        gc.set_threshold(*often)
        gc.unfreeze()

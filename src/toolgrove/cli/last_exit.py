"""Serving until a signal comes, and ending the process within the budget whatever its threads do."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from mcp_serve.own_loop import run_to_the_end
from mcp_serve.signals import Stop

CHILDREN = 0.3
"""Seconds of the budget that servers which do not want to end do not get: the store and the exit need them."""
_UNHEEDED = 0.2
_exit = partial(os._exit, 0)


def serve_and_exit(serve: Callable[[Stop], Coroutine[Any, Any, None]]) -> int:
    """The exit code of a program that serves; a module that blocks its thread for ever does not keep it."""
    run_to_the_end(serve, Stop(at_last=_exit))
    if any(not one.daemon for one in threading.enumerate() if one is not threading.main_thread()):
        timer = threading.Timer(_UNHEEDED, _exit)
        timer.daemon = True
        timer.start()
        sys.stdout.flush()
    return 0

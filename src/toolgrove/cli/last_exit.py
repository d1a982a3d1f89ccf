"""Serving until a signal comes, and ending the process within the budget whatever its threads do."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from mcp_serve.own_loop import run_to_the_end
from mcp_serve.signals import Stop

CHILDREN = 0.3
"""Seconds of the budget that servers which do not want to end do not get: the store and the exit need them."""
_exit = partial(os._exit, 0)


def serve_and_exit(serve: Callable[[Stop], Coroutine[Any, Any, None]]) -> int:
    """Serve, and end the process: everything is kept by then, and to take Python apart would take longer than that.

    What goes wrong is raised instead.
    """
    run_to_the_end(serve, Stop(at_last=_exit))
    with suppress(OSError):  # nobody reads any more
        sys.stdout.flush()
    atexit._run_exitfuncs()
    os._exit(0)

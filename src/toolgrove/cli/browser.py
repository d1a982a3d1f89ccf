"""Showing a page in the person's browser, where there is a display."""

from __future__ import annotations

import os
import sys
import webbrowser
from threading import Thread


def show_page(address: str) -> bool:
    """Open it, without waiting for the browser; whether there is a display to open it on."""
    if not _has_display():
        return False
    Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    return True


def _has_display() -> bool:
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

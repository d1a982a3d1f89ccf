"""A line for each call, for the person at the terminal where a project is served."""

from __future__ import annotations

from datetime import datetime

from toolgrove.cli.screen import Screen
from toolgrove.events import Event, ToolFailed, ToolSucceeded


class CallLog:
    """Shows when, who, what, how it ended and how long it took."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def hear(self, event: Event) -> None:
        """Show a call that ended."""
        if isinstance(event, ToolSucceeded):
            self._show(event, "ok", "dim")
        elif isinstance(event, ToolFailed):
            waits = event.error.get("reason") == "approval_required"
            self._show(event, "waits for approval" if waits else str(event.error.get("code")), "yellow")

    def _show(self, event: ToolSucceeded | ToolFailed, outcome: str, style: str) -> None:
        at = datetime.fromtimestamp(event.timestamp).strftime("%H:%M:%S")
        self._screen.say(f"{at}  {event.agent}  {event.tool}  {outcome}  {event.duration * 1000:.1f} ms", style)

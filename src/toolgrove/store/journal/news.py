"""What other processes wrote into a journal that several share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolgrove.tree.effects import Effects
from toolgrove.tree.saved import SavedWorkspace


@dataclass(frozen=True, kw_only=True, slots=True)
class Deed:
    """Which call did it: what an event tells of it."""

    call_id: str
    tool: str
    chain: tuple[str, ...]
    run_id: str
    parent_call_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class News:
    """Entries in order, up to where the journal stood; where some are no longer kept, the whole workspace instead.

    Where there were too many for one look, they are a `part`: the first of them. `newest` is the change at which the
    journal stood then.
    """

    newest: str
    entries: Sequence[tuple[Effects, Deed]] = ()
    is_part: bool = False
    anew: SavedWorkspace | None = None

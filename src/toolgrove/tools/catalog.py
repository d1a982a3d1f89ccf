"""All tree tools by name; the order is the one in which agents and the docs see them."""

from __future__ import annotations

from toolgrove.tools import (
    arranging,
    checking,
    history,
    marking,
    reading,
    searching,
    snapshots,
    transferring,
    viewing,
    writing,
)
from toolgrove.tools.declaration import Declaration, Family

FAMILIES: dict[str, Family] = {
    "Reading": reading.family,
    "Views": viewing.family,
    "Searching": searching.family,
    "Writing": writing.family,
    "Arranging": arranging.family,
    "Tags and bookmarks": marking.family,
    "Rules and types": checking.family,
    "Snapshots and diffs": snapshots.family,
    "History": history.family,
    "Export and import": transferring.family,
}
DECLARATIONS: dict[str, Declaration] = {tool.spec.name: tool for family in FAMILIES.values() for tool in family.tools}

"""Resources and prompts of an agent, as the commands show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from toolgrove.cli.screen import line, table

if TYPE_CHECKING:
    from toolgrove.types import Offered


def offered_table(offered: Sequence[Mapping[str, str]]) -> Table:
    """One row each: what it is, where, and of which server."""
    shown = table("ALSO", "ADDRESS", "SERVER")
    for one in offered:
        shown.add_row(line(one["kind"]), line(one["address"]), line(one["source"]))
    return shown


def counted(offered: Sequence[Offered]) -> str:
    """How many there are of each kind: ", 2 resources, 1 prompt"."""
    counts = Counter(one.kind for one in offered)
    return "".join(f", {counts[kind]} {kind}{'s' * (counts[kind] != 1)}" for kind in sorted(counts, reverse=True))

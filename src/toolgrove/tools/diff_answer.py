"""How a diff is answered: whole where it fits, else a page at a time, by kind and node."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from toolgrove.tools.answer_size import fits, size
from toolgrove.tools.context import ToolContext
from toolgrove.tree.diff import Diff
from toolgrove.types import Arguments, Result

_NOTE = 300
Entry = tuple[str, dict[str, Any]]


def diff_answer(context: ToolContext, arguments: Arguments, diff: Diff) -> Result:
    """The five lists of a diff, or the next part of them and how many entries of each come after it."""
    lists = diff.to_json()
    last = context.place(arguments)
    room = context.room()
    # An entry has an id at least: of more of them than that not all can fit.
    is_short = sum(map(len, lists.values())) * 16 < room
    if (
        last is None
        and "limit" not in arguments
        and is_short
        and (context.budget is None or fits(lists, context.budget))
    ):
        return lists
    kinds = list(lists)
    entries = [(kind, entry) for kind in kinds for entry in sorted(lists[kind], key=lambda entry: str(entry["nodeId"]))]
    mark = (0, "") if last is None else (kinds.index(last[0]), last[1])

    def later() -> Iterator[Entry]:
        return (one for one in entries if (kinds.index(one[0]), one[1]["nodeId"]) > mark)

    shown, more = context.page(
        arguments,
        later(),
        lambda one: [one[0], one[1]["nodeId"]],
        lambda one: one,
        taken=_NOTE + size(kinds),
        most=arguments.get("limit") or len(entries) or 1,
    )
    page: Result = {kind: [entry for of, entry in shown if of == kind] for kind in kinds}
    if not more:
        return page
    left: dict[str, int] = {}
    for kind, _ in islice(later(), len(shown), None):
        left[kind] = left.get(kind, 0) + 1
    return {**page, **more, "cut": {"left": left, "hint": "Send nextPageToken as pageToken for the rest."}}

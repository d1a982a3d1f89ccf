"""What a tree tool works with while one call runs: the workspace, who calls, and pages of what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from toolgrove.notation.json_value import canonical
from toolgrove.tools.answer_size import size
from toolgrove.tools.schema import PAGE_DEFAULT
from toolgrove.tree.effects import Change
from toolgrove.tree.footprint import NOTHING, Footprint
from toolgrove.tree.history import Commit
from toolgrove.tree.node import Node
from toolgrove.tree.payload_type import PayloadTypes
from toolgrove.tree.position import position
from toolgrove.tree.property_path import PropertyFilter
from toolgrove.tree.rank import rank_of, rank_text
from toolgrove.tree.render import CHARS_PER_TOKEN, ENVELOPE
from toolgrove.tree.tree import Tree
from toolgrove.tree.undo import Move
from toolgrove.tree.view import View
from toolgrove.tree.workspace import Limits, Workspace
from toolgrove.types import Arguments, Caller

# How large a page is, how it is written and where it starts, is no part of the question that a page token is bound to.
_PAGE_ARGUMENTS = frozenset(
    ("pageToken", "pageSize", "limit", "paging", "maxTokens", "format", "fields", "path", "count")
)
WHOLE = 2**62
"""The room of an answer that nobody bounds."""


@dataclass(kw_only=True, slots=True)
class ToolContext:
    """The workspace as one call sees it, and what the call wants changed beside the tree.

    `budget` is how many tokens the answer may have; None for a whole document. `looked_at` is what a change rests on
    beside what it touches, where that is known only once it was made.
    """

    workspace: Workspace
    caller: Caller
    tool: str
    now: float
    dry_run: bool = False
    budget: int | None = None
    changes: list[Change] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    move: Move = "do"
    looked_at: Footprint = NOTHING
    reviving: Sequence[Commit] = ()

    @property
    def tree(self) -> Tree:
        return self.workspace.tree

    @property
    def view(self) -> View:
        return self.workspace.view(self.caller)

    @property
    def types(self) -> PayloadTypes:
        return self.workspace.types

    @property
    def limits(self) -> Limits:
        """The most that one call may cover."""
        return self.workspace.limits

    def commit(self) -> None:
        """Close what was done as a commit."""
        commit = self.workspace.commit(self.caller, self.tool, self.reviving, self.now)
        if commit is not None:
            self.commits.append(commit)

    def filter(self, arguments: Arguments, preset: PropertyFilter) -> PropertyFilter:
        """The property filter of a read: what it says itself wins over the session's preset."""
        if "includedProperties" not in arguments and "excludedProperties" not in arguments:
            return preset
        return PropertyFilter(
            tuple(arguments.get("includedProperties", preset.included)),
            tuple(arguments.get("excludedProperties", preset.excluded)),
        )

    # Pages ----------------------------------------------------------------------------------------

    def question(self, arguments: Arguments) -> str:
        """What a page token of this call is bound to."""
        asked = {key: value for key, value in arguments.items() if key not in _PAGE_ARGUMENTS}
        return canonical([self.caller.agent, self.caller.session, self.tool, asked])

    def place(self, arguments: Arguments) -> Any:
        """Where the page before ended; None on the first one."""
        token = arguments.get("pageToken")
        return None if token is None else self.workspace.tokens.read(self.question(arguments), token)

    def ordered(self, arguments: Arguments, make: Callable[[], list[Any]]) -> list[Any]:
        """A result that takes the whole tree to find, made once for all its pages while nothing changes."""
        workspace = self.workspace
        # By identity: a change that was taken back had the number of the one that came instead.
        key = (self.question(arguments), workspace.version_at(workspace.tree_seq), self.view.seq)
        return workspace.ordered.get(key, make)

    def page(
        self,
        arguments: Arguments,
        found: Iterator[Any],
        place: Callable[[Any], Any],
        show: Callable[[Any], Any],
        *,
        taken: int = 0,
        most: int | None = None,
    ) -> tuple[list[Any], dict[str, str]]:
        """The next items as they are shown, and the token for those after them; a page ends early for its budget.

        `taken` is how many characters the rest of the answer has, `most` how many items a page has at most.
        """
        most = most or arguments.get("limit") or arguments.get("pageSize") or PAGE_DEFAULT
        items = list(islice(found, most + 1))
        room = self.room(taken)
        shown: list[Any] = []
        costs: list[int] = []
        for item in items[:most]:
            form = show(item)
            cost = size(form) + 2
            # The first item always comes, since nothing would come after it otherwise.
            if shown and cost > room:
                break
            room -= cost
            shown.append(form)
            costs.append(cost)
        more = self._more(arguments, items, len(shown), place)
        while more and len(shown) > 1 and len(more["nextPageToken"]) > room:
            shown.pop()
            room += costs.pop()
            more = self._more(arguments, items, len(shown), place)
        return shown, more

    def room(self, taken: int = 0) -> int:
        """How many characters an answer has for its items."""
        return WHOLE if self.budget is None else self.budget * CHARS_PER_TOKEN - ENVELOPE - taken

    def _more(self, arguments: Arguments, items: list[Any], shown: int, place: Callable[[Any], Any]) -> dict[str, str]:
        if len(items) <= shown:
            return {}
        return {"nextPageToken": self.workspace.tokens.issue(self.question(arguments), place(items[shown - 1]))}


def place_of(node: Node, root: Node) -> list[str]:
    """A node's place in pre-order, as a token carries it."""
    return [rank_text(rank) for rank in position(node, root)]


def ranks_of(place: Sequence[str] | None) -> list[Any] | None:
    """The ranks that a token carried."""
    return None if place is None else [rank_of(text) for text in place]


def ids(nodes: Iterable[Node]) -> list[str]:
    return [node.id for node in nodes]

"""What one call did to the tree, told from its history: every node as it was and as it became, with names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from toolgrove.tree.diff import Diff, diff_states
from toolgrove.tree.history import Commit, History
from toolgrove.tree.moment import Moment
from toolgrove.tree.node import name_of
from toolgrove.tree.tree import Tree

_ENDS = ("nodeId", "parentId", "oldParentId", "newParentId")


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """A difference, and what the nodes in it are called, as they were or became."""

    diff: Diff
    names: dict[str, str]


def account(tree: Tree, history: History, seq: int, *, agent: str, tool: str) -> Account | None:
    """What the call changed whose last commit is at `seq`; None if the history does not say so any more."""
    commits = [*_of_call(reversed(history.since(history.floor)), seq, agent, tool)]
    if not commits:
        return None
    was, became = history.images_at(commits[-1].seq - 1), history.images_at(seq)
    diff = diff_states(tree, was, became)
    before, after = Moment(tree, was), Moment(tree, became)
    return Account(diff=diff, names={key: _name(before, after, key) for key in _ids(diff)})


def _of_call(newest_first: Iterable[Commit], seq: int, agent: str, tool: str) -> Iterator[Commit]:
    """The commits of one call, which came together."""
    last: Commit | None = None
    for commit in newest_first:
        if commit.seq > seq:
            continue
        if (commit.agent, commit.tool) != (agent, tool) or (last is None and commit.seq != seq):
            return
        if last is not None and (commit.at is None or commit.at != last.at):
            return
        last = commit
        yield commit


def _ids(diff: Diff) -> Iterator[str]:
    for entries in diff.to_json().values():
        for entry in entries:
            yield from (entry[end] for end in _ENDS if entry.get(end) is not None)


def _name(before: Moment, after: Moment, node_id: str) -> str:
    state: Any = after.state(node_id) or before.state(node_id)
    return (None if state is None else name_of(state.payload)) or node_id

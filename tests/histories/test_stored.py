"""The replay of a journal's rows, on rows that are made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from histories.stored import Rows, replayed


def note(parent: str, name: str, place: int = 0, **payload: Any) -> list[Any]:
    return [parent, place, "Note", {"name": name, **payload}, [], None]


def past(tool: str, before: dict[str, Any]) -> str:
    return json.dumps(["c1", "do", [[1, tool, before, [], [], [], 0.0]]])


def entry(call: str, *made: tuple[str, list[Any]], gone: tuple[str, ...] = ()) -> str:
    return json.dumps([["", {}, list(gone), [], None, None, [call]], [[node_id, *fields] for node_id, fields in made]])


def good() -> Rows:
    """A node is made, set, and another is made and removed."""
    first, second = note("root", "r", value="first", replaced=None), note("root", "r", value="a", replaced="first")
    return Rows(
        nodes=[json.dumps(["r", *second])],
        journal=[
            (1, 0, past("add_child", {"r": None})),
            (2, 1, past("update_payload", {"r": first})),
            (3, 2, past("add_child", {"n1": None})),
            (4, 3, past("remove_node", {"n1": note("r", "x")})),
        ],
        entries=[
            (1, entry("a", ("r", first))),
            (2, entry("b", ("r", second))),
            (3, entry("c", ("n1", note("r", "x")))),
            (4, entry("d", gone=("n1",))),
        ],
    )


def test_rows_that_fit_lead_to_the_tree_that_is_stored() -> None:
    kept = replayed(good())
    assert kept.problems == []
    assert kept.tree is not None
    assert kept.tree.subjects() == {"node root": None, "register r": "a"}
    assert (kept.changes, kept.calls, kept.is_whole, kept.born) == (4, ["a", "b", "c", "d"], True, {"r": 1, "x": 1})
    assert kept.values == {"register r": [("first", None), ("a", "first")]}


def test_entries_of_which_the_oldest_are_gone_go_on_from_where_they_begin() -> None:
    rows = good()
    assert rows.entries is not None
    assert replayed(replace(rows, entries=rows.entries[2:])).problems == []
    assert replayed(replace(rows, entries=None)).problems == []


def _without_an_entry(rows: Rows) -> Rows:
    return replace(rows, journal=[*rows.journal[:1], *rows.journal[2:]])


def _made_twice(rows: Rows) -> Rows:
    return replace(rows, journal=[rows.journal[0], (2, 1, past("add_child", {"r": None})), *rows.journal[2:]])


def _never_made(rows: Rows) -> Rows:
    return replace(rows, nodes=[*rows.nodes, json.dumps(["n9", *note("r", "y")])])


def _on_nothing(rows: Rows) -> Rows:
    return replace(rows, journal=[*rows.journal[:3], (4, 3, past("remove_node", {"n1": note("n8", "x")}))])


def _rests_on_another_value(rows: Rows) -> Rows:
    other = note("root", "r", value="z", replaced=None)
    return replace(rows, journal=[rows.journal[0], (2, 1, past("update_payload", {"r": other})), *rows.journal[2:]])


def _left_what_is_gone(rows: Rows) -> Rows:
    tagged = [*note("r", "x")[:3], 0, [], None]
    return replace(rows, journal=[*rows.journal[:3], (4, 3, past("tag_node", {"n1": tagged}))])


def _leads_elsewhere(rows: Rows) -> Rows:
    return replace(rows, nodes=[json.dumps(["r", *note("root", "r", value="q", replaced="first")])])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_without_an_entry, "is missing"),
        (_made_twice, "which is not there after it"),
        (_never_made, "nodes that none made"),
        (_on_nothing, "is below n8, which is not there"),
        (_rests_on_another_value, "and there was"),
        (_left_what_is_gone, "left the payload of n1, which is not there"),
        (_leads_elsewhere, "the entries lead to other nodes"),
    ],
)
def test_rows_that_contradict_each_other_are_told(spoil: Callable[[Rows], Rows], words: str) -> None:
    assert any(words in problem for problem in replayed(spoil(good())).problems)

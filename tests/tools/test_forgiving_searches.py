"""A search understands what a model is likely to write, and an empty answer says what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from grove_kit import Hand, sample

pytestmark = pytest.mark.anyio


async def grown() -> Hand:
    _, editor = await sample()
    await editor.ok("update_payload", nodeId="kitchen", patch={"no": 1742, "deep": {"list": ["Oven", {"k": "gas"}]}})
    await editor.ok("tag_node", nodeId="kitchen", tags=["urgent"])
    return editor


async def found(editor: Hand, query: str) -> list[str]:
    return [node["nodeId"] for node in (await editor.ok("select_nodes", queryDsl=query, fields="ids"))["items"]]


@pytest.mark.parametrize(
    ("query", "nodes"),
    [
        ("kitchen", ["kitchen"]),
        ('"living room"', ["living"]),
        ("'Room'", ["living", "bath"]),
        ("oven", ["kitchen"]),
        ("GAS", ["kitchen"]),
        ("74", ["kitchen"]),
        ("320", ["living"]),
        ("no contains 74", ["kitchen"]),
        ("no contains '17'", ["kitchen"]),
        ("deep.list contains Oven", ["kitchen"]),
        ("squareFeet contains 0 and name contains bath", ["bath"]),
        ("no = '1742'", []),
    ],
)
async def test_one_word_or_one_text_is_looked_for_in_any_property_and_numbers_are_read_as_text(
    query: str, nodes: list[str]
) -> None:
    assert await found(await grown(), query) == nodes


async def test_predicates_read_numbers_as_text_too_and_lists_by_their_members() -> None:
    editor = await grown()
    await editor.ok("update_payload", nodeId="shed", patch={"codes": [17, "18"]})
    for value in (17, "17", 18, "18"):
        leaf: dict[str, Any] = {"path": "codes", "op": "contains", "value": value}
        for answer in (
            await editor.ok("search", rootNodeId="root", filters=[leaf]),
            await editor.ok("search_advanced", rootId="root", predicates=leaf),
        ):
            assert [node["nodeId"] for node in answer["items"]] == ["shed"], value
    for odd in (1, True, None):
        leaf = {"path": "codes", "op": "contains", "value": odd}
        assert (await editor.ok("search", rootNodeId="root", filters=[leaf]))["items"] == []


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("type = Room", "@type = Room"),
        ("tag = urgent", "@tag = urgent"),
        ("tags contains urgent", "@tag = urgent"),
        ("id = kitchen", "@id = kitchen"),
        ("//Room", "//*[@type = Room]"),
        ("//kitchen", "'Kitchen'"),
        ("/Property/Huose", "'House'"),
        ("@type = room", "'Room'"),
        ("@tag = urgnt", "'urgent'"),
        ("squarefeets > 3", "'squareFeet'"),
        ("colour = red", "describe_tree"),
        ("squareFeet > '3'", "without quotes"),
        ("status = 3", "in quotes"),
        ("nobody", "No property of any node contains 'nobody'."),
        ("urgent", "@tag = urgent"),
        ("House//x", "path starts with"),
    ],
)
async def test_an_empty_answer_says_what_to_write_instead(query: str, words: str) -> None:
    editor = await grown()
    answer = await editor("select_nodes", queryDsl=query)
    assert words in (answer["error"]["hint"] if "error" in answer else answer["hint"])


@pytest.mark.parametrize(
    "query", ["squareFeet > 9000", "status != done and squareFeet < 0", "//Kitchen[squareFeet = 1]"]
)
async def test_an_empty_answer_about_which_nothing_is_known_carries_no_hint(query: str) -> None:
    answer = await (await grown()).ok("select_nodes", queryDsl=query)
    assert answer["items"] == []
    assert "hint" not in answer


async def test_other_searches_and_bulk_changes_give_the_same_hints() -> None:
    editor = await grown()
    leaf: dict[str, Any] = {"path": "type", "op": "eq", "value": "Room"}
    for answer in (
        await editor.ok("search", rootNodeId="root", filters=[leaf]),
        await editor.ok("search_advanced", rootId="root", predicates={"or": [leaf]}),
        await editor.ok("search_advanced", rootId="root", predicates=leaf, sortBy={"path": "name"}),
        await editor.ok("update_nodes", filter=[leaf], patch={"a": 1}),
        await editor.ok("update_nodes", filter="type = Room", patch={"a": 1}),
        await editor.ok("apply_changes", changes=[{"op": "remove", "at": {"query": "type = Room"}}]),
    ):
        assert "@type = Room" in answer["hint"]
    assert "'urgent'" in (await editor.ok("query_by_tag", tag="urgennt"))["hint"]


async def test_a_word_that_belongs_to_the_language_is_still_an_error_with_advice() -> None:
    error = await (await grown()).refused("select_nodes", queryDsl="living room")
    assert '"living room"' in error["hint"]
    assert (await (await grown()).refused("select_nodes", queryDsl="contains"))["code"] == "invalid_argument"

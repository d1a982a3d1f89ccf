"""A write goes where a read of the same path would look: an exact key first, else the dotted path."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grove_kit import config, sample
from toolgrove.errors import UnwritablePath
from toolgrove.notation.json_value import copied, identical
from toolgrove.tree.property_path import MISSING, finder
from toolgrove.tree.property_write import drop, put

pytestmark = pytest.mark.anyio
KEYS = st.sampled_from(["a", "A", "b", "a.b", "No."])
PAYLOADS = st.recursive(
    st.integers(0, 2) | st.none(), lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=5
).map(lambda value: value if isinstance(value, dict) else {"a": value})
PATHS = st.lists(KEYS, min_size=1, max_size=3).map(".".join) | st.just("payload.a")


@settings(max_examples=60, deadline=None)
@given(PAYLOADS, PATHS)
def test_what_is_set_is_what_is_read_and_what_is_removed_is_gone(payload: Any, path: str) -> None:
    before, own = copied(payload), dict(payload)
    with suppress(UnwritablePath):
        put(own, path, "new")
        assert finder(path)(own) == "new"
        assert drop(own, path)
    gone = dict(payload)
    there = finder(path)(gone) is not MISSING
    assert drop(gone, path) is there
    assert identical(payload, before)


async def test_nested_values_are_set_and_removed_by_every_tool() -> None:
    _, editor = await sample()
    await editor.ok("update_payload_property", nodeId="kitchen", propertyName="meta", newValue={"a": 1})
    answer = await editor.ok("update_payload_property", nodeId="kitchen", propertyName="meta.a", newValue=2)
    assert answer["payload"] == {"meta.a": 2}
    answer = await editor.ok("update_payload", nodeId="kitchen", patch={"meta.b.c": [1]}, remove=["meta.a", "nothing"])
    assert (answer["payload"], answer["removed"]) == ({"meta.b.c": [1]}, ["meta.a"])
    shown = await editor.ok("get_node", nodeId="kitchen", includedProperties=["meta"])
    assert shown["payload"] == {"meta": {"b": {"c": [1]}}}
    answer = await editor.ok("update_nodes", filter="#kitchen", remove=["meta.b"])
    assert answer["updated"] == 1
    await editor.ok("update_payload", nodeId="kitchen", remove=["meta"])
    assert "meta" not in (await editor.ok("get_node", nodeId="kitchen"))["payload"]


async def test_an_exact_key_comes_first_and_another_case_is_no_second_property() -> None:
    _, editor = await sample()
    node = {"nodeId": "odd", "parentId": "root", "payloadType": "T", "payload": {"a.b": 1, "a": {"b": 2}, "Status": 3}}
    await editor.ok("import_merge", json={"items": [node]}, strategy="upsert")
    await editor.ok("update_payload", nodeId="odd", patch={"a.b": 5, "status": 6, "No.": 7})
    shown = await editor.ok("get_node", nodeId="odd")
    assert shown["payload"] == {"a.b": 5, "a": {"b": 2}, "Status": 6, "No.": 7}


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"name.x": 1}, "'name' in this path is a plain value"),
        ({"list.x": 1}, "Set all of 'list' at once"),
        ({".".join("a" * 40): 1}, "nested too deeply"),
        ({"deep.er": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}, "nested too deeply"),
    ],
)
async def test_a_path_that_leads_nowhere_is_refused_and_says_what_to_set(patch: Any, words: str) -> None:
    _, editor = await sample()
    await editor.ok("update_payload", nodeId="kitchen", patch={"list": [{"x": 1}]})
    before = await editor.tree()
    error = await editor.refused("update_payload", nodeId="kitchen", patch={"ok": 1, **patch})
    assert error["code"] == "invalid_argument"
    assert words in error["message"]
    assert await editor.tree() == before


async def test_neither_a_patch_nor_a_removal_is_refused() -> None:
    _, editor = await sample()
    error = await editor.refused("update_payload", nodeId="kitchen")
    assert (error["path"], "remove" in error["message"]) == ("patch", True)


@pytest.mark.parametrize("path", ["Parent", "parent.x", "payload.NodeId", "CHILDREN"])
async def test_no_path_leads_to_what_a_self_payload_node_keeps_to_itself(path: str) -> None:
    _, editor = await sample(config(workspace={"payloadTypes": {"Page": {"kind": "self"}}, "allowUnknownTypes": True}))
    page = (await editor.ok("add_child", parentNodeId="root", payloadType="Page"))["nodeId"]
    for arguments in ({"patch": {path: 1}}, {"remove": [path]}):
        assert (await editor.refused("update_payload", nodeId=page, **arguments))["reason"] == "guarded_property"


async def test_a_patch_called_tags_is_written_and_names_the_tool_for_tags() -> None:
    _, editor = await sample()
    answer = await editor.ok("update_nodes", filter="#kitchen", patch={"tags": ["urgent"]})
    assert (answer["updated"], "tag_node" in answer["hint"]) == (1, True)
    assert "hint" not in await editor.ok("update_nodes", filter="#kitchen", patch={"status": "open"})

"""An approval of a tree tool is for one effect: what the call would remove or overwrite, told in names."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from grove_kit import Hand, config, hand, sample
from toolgrove import Grove
from toolgrove.tools import DECLARATIONS

pytestmark = pytest.mark.anyio
CHANGING = sorted(name for name, declaration in DECLARATIONS.items() if declaration.mutates)


class Garden:
    """A tree that ed changes freely, and in which careful asks before everything."""

    def __init__(self, grove: Grove, ed: Hand, careful: Hand) -> None:
        self.grove, self.ed, self.careful = grove, ed, careful

    async def add(self, parent: str, name: str, **more: Any) -> str:
        form = {"parentNodeId": parent, "payloadType": "Bed", "payloadProps": {"name": name, **more}}
        return str((await self.ed.ok("add_child", **form))["nodeId"])

    async def asked(self, tool: str, **arguments: Any) -> dict[str, Any]:
        error = await self.careful.refused(tool, **arguments)
        assert error["reason"] == "approval_required", error
        return error

    async def effect(self, asked: dict[str, Any]) -> str:
        """What a person reads; the agent is not told what it was not let to see."""
        assert "effect" not in asked
        return (await self.grove.approvals.get(asked["approvalId"])).request.effect

    async def approved(self, tool: str, **arguments: Any) -> str:
        asked = str((await self.asked(tool, **arguments))["approvalId"])
        await self.grove.approvals.decide(asked, approve=True, by="grace")
        return asked


@pytest.fixture
async def garden() -> AsyncIterator[Garden]:
    agents = {"ed": {"role": "editor"}, "careful": {"role": "editor", "approve": CHANGING}}
    agents["asking"] = {"role": "editor", "approve": ["update_payload"], "askClient": True, "concurrency": "node"}
    async with Grove(config(agents=agents)) as grove:
        yield Garden(grove, await hand(grove, "ed"), await hand(grove, "careful"))


async def test_an_approval_to_remove_an_empty_node_does_not_remove_what_was_moved_into_it(garden: Garden) -> None:
    herbs, mint = await garden.add("root", "Herbs"), await garden.add("root", "Mint")
    await garden.add(mint, "Peppermint")
    first = await garden.approved("remove_node", nodeId=herbs)
    await garden.ed.ok("move_node", nodeId=mint, newParentId=herbs)
    again = await garden.asked("remove_node", nodeId=herbs)
    assert again["approvalId"] != first
    assert again["replaces"] == first
    assert await garden.effect(again) == "removes 'Herbs' and 2 nodes below it"
    assert f"It would now change something other than when {first!r} was requested." in again["message"]
    await garden.grove.approvals.decide(again["approvalId"], approve=True, by="grace")
    assert (await garden.careful.ok("remove_node", nodeId=herbs))["removedCount"] == 3
    assert (await garden.grove.approvals.get(first)).state == "expired"


async def test_what_others_do_around_it_leaves_an_approval_good(garden: Garden) -> None:
    top = await garden.add("root", "Beds")
    herbs, beans = await garden.add(top, "Herbs"), await garden.add(top, "Beans")
    await garden.add(herbs, "Mint")
    await garden.approved("remove_node", nodeId=herbs)
    await garden.ed.ok("update_payload", nodeId=top, patch={"name": "All beds"})
    await garden.ed.ok("update_payload", nodeId=beans, patch={"price": 3})
    await garden.add(top, "Peas")
    await garden.ed.ok("sort_children", parentId=top, byProp="name", direction="desc")
    await garden.ed.ok("remove_node", nodeId=beans)
    await garden.careful.ok("remove_node", nodeId=herbs)


@pytest.mark.parametrize("change", ["payload", "tags", "place", "child", "gone"])
async def test_whatever_changes_in_what_would_be_removed_asks_anew(garden: Garden, change: str) -> None:
    herbs = await garden.add("root", "Herbs")
    mint, elsewhere = await garden.add(herbs, "Mint"), await garden.add("root", "Elsewhere")
    await garden.approved("remove_node", nodeId=herbs)
    match change:
        case "payload":
            await garden.ed.ok("update_payload", nodeId=mint, patch={"price": 3})
        case "tags":
            await garden.ed.ok("tag_node", nodeId=mint, tags=["kept"])
        case "place":
            await garden.ed.ok("move_node", nodeId=herbs, newParentId=elsewhere)
        case "child":
            await garden.add(mint, "Peppermint")
        case "gone":
            await garden.ed.ok("remove_node", nodeId=mint)
    assert "replaces" in await garden.asked("remove_node", nodeId=herbs)


async def test_an_effect_that_is_again_what_it_was_is_still_approved(garden: Garden) -> None:
    herbs = await garden.add("root", "Herbs", price=1)
    await garden.approved("remove_node", nodeId=herbs)
    await garden.ed.ok("update_payload", nodeId=herbs, patch={"price": 2})
    await garden.ed.ok("update_payload", nodeId=herbs, patch={"price": 1})
    await garden.careful.ok("remove_node", nodeId=herbs)


async def test_a_call_that_only_adds_is_approved_whatever_happens_meanwhile(garden: Garden) -> None:
    form = {"parentNodeId": "root", "payloadType": "Bed", "payloadProps": {"name": "Beans"}}
    asked = await garden.approved("add_child", **form)
    kept = await garden.grove.approvals.get(asked)
    assert (kept.request.effect, kept.request.footprint_hash) == ("adds 'Beans' to 'root'", "")
    await garden.add("root", "Herbs")
    await garden.careful.ok("add_child", **form)


async def test_many_nodes_changed_in_steps_have_the_footprint_that_was_foreseen(garden: Garden) -> None:
    for name in ("Herbs", "Beans", "Peas", "Kale"):
        await garden.add("root", name, status="open")
    form = {"filter": "status = open", "patch": {"status": "done"}}
    await garden.approved("update_nodes", **form)
    assert (await garden.careful.ok("update_nodes", **form))["updated"] == 4
    await garden.ed.ok("update_nodes", filter="status = done", patch={"status": "open"})
    await garden.approved("update_nodes", **form)
    await garden.add("root", "Leek", status="open")
    again = await garden.asked("update_nodes", **form)
    assert await garden.effect(again) == "overwrites 1 property of 'Herbs', 'Beans', 'Peas' and 2 others: 'status'"


async def test_a_call_that_would_fail_is_put_before_nobody(garden: Garden) -> None:
    error = await garden.careful.refused("remove_node", nodeId="nowhere")
    assert error["code"] == "not_found"
    assert await garden.grove.approvals.list() == []


class Reader:
    """A person who agrees; the first time, somebody tags a node while they read."""

    def __init__(self, garden: Garden, node: str) -> None:
        self.garden, self.node = garden, node
        self.asked: list[str] = []

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        raise AssertionError("no progress here")

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any:
        self.asked.append(message.splitlines()[0])
        if len(self.asked) == 1:
            await self.garden.ed.ok("tag_node", nodeId=self.node, tags=["kept"])
        return {"approve": True}


async def test_what_changes_between_the_approval_and_the_change_itself_is_asked_about_again(garden: Garden) -> None:
    """The version does not tell: it is about the node of the call, the change reaches one that shares its payload."""
    herbs = await garden.add("root", "Herbs", price=1)
    copy = await garden.ed.ok("copy_subtree", sourceId=herbs, targetParentId="root", mode="reference")
    person = Reader(garden, copy["nodeId"])
    form = {"nodeId": herbs, "patch": {"price": 2}, "versionToken": copy["version"]}
    answer = await (await garden.grove.agent("asking")).call("update_payload", form, client=person)
    assert answer["nodeIds"] == [herbs, copy["nodeId"]]
    effect = "It overwrites 1 property of 'Herbs' and 'Herbs': 'price'."
    assert [text.partition("). ")[2] for text in person.asked] == [effect, effect]
    assert [one.state for one in await garden.grove.approvals.list()] == ["expired", "used"]


async def test_asking_changes_nothing(garden: Garden) -> None:
    herbs = await garden.add("root", "Herbs")
    before, version = await garden.ed.tree(), await garden.ed.version()
    await garden.asked("remove_node", nodeId=herbs)
    await garden.asked("add_child", parentNodeId=herbs, payloadType="Bed", payloadProps={})
    assert (await garden.ed.tree(), await garden.ed.version()) == (before, version)
    assert await garden.add(herbs, "Mint") == "n2"


async def test_a_name_can_neither_hide_nor_end_its_quotes_nor_fill_the_page(garden: Garden) -> None:
    hidden = await garden.add("root", "\u202egpj.exe")
    forged = await garden.add("root", "Herbs' and nothing else, 'honest\nagent")
    endless = await garden.add("root", "x" * 5_000)
    asked = [await garden.asked("remove_node", nodeId=node) for node in (hidden, forged, endless)]
    effects = [await garden.effect(one) for one in asked]
    assert effects[0] == r"removes '\u202egpj.exe'"
    assert effects[1] == r"removes 'Herbs\' and nothing else, \'honest\nagent'"
    assert len(effects[2]) < 100


EFFECTS = [
    (
        "update_payload_property",
        {"nodeId": "kitchen", "propertyName": "status", "newValue": "x"},
        "overwrites 1 property",
    ),
    ("update_payload", {"nodeId": "kitchen", "patch": {"brand_new": 1}}, "adds 1 property to 'Kitchen': 'brand_new'"),
    ("move_node", {"nodeId": "shed", "newParentId": "house"}, "moves 'Shed' from 'Property' to 'House'"),
    ("tag_node", {"nodeId": "kitchen", "tags": ["x"]}, "changes the tags of 'Kitchen'"),
    ("move_before", {"nodeId": "living", "siblingId": "kitchen"}, "changes the order of the children of 'House'"),
    ("bookmark", {"nodeId": "kitchen", "label": "mine"}, "sets the bookmark 'mine' to 'Kitchen'"),
    ("snapshot_create", {"label": "before"}, "takes the snapshot 'before'"),
    ("clone_node", {"nodeId": "kitchen", "targetParentId": "house"}, "adds 'Kitchen' to 'House'"),
]


@pytest.mark.parametrize(("tool", "arguments", "effect"), EFFECTS, ids=[one[0] for one in EFFECTS])
async def test_a_person_reads_in_names_what_a_call_would_do(tool: str, arguments: dict[str, Any], effect: str) -> None:
    agents = {"editor": {"role": "editor"}, "careful": {"role": "editor", "approve": CHANGING}}
    grove, _ = await sample(config(agents=agents))
    careful = await hand(grove, "careful")
    await careful.refused(tool, **arguments)
    (waiting,) = await grove.approvals.list("pending")
    assert waiting.request.effect.startswith(effect)


@pytest.mark.parametrize("tool", CHANGING)
async def test_every_tool_that_changes_something_can_tell_beforehand_what(tool: str) -> None:
    agents = {"editor": {"role": "editor"}, "careful": {"role": "editor", "approve": [tool]}}
    grove, _ = await sample(config(agents=agents))
    careful = await hand(grove, "careful")
    await careful("add_child", parentNodeId="house", payloadType="T", payloadProps={})
    await careful("snapshot_create", label="first")
    await careful("bookmark", nodeId="house", label="home")
    if tool == "redo":
        await careful("undo")
    example = json.loads(json.dumps(dict(DECLARATIONS[tool].example)))
    answer = await careful(tool, **example)
    assert answer["error"]["reason"] == "approval_required", answer
    assert (await grove.approvals.get(answer["error"]["approvalId"])).request.effect
    await grove.approvals.decide(answer["error"]["approvalId"], approve=True, by="grace")
    assert "error" not in await careful(tool, **example)

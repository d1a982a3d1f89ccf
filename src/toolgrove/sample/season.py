"""The sample's past: the garden is laid out once, and its agents leave a history worth looking at."""

from __future__ import annotations

import json
from importlib.resources import files

from toolgrove.grove import Grove
from toolgrove.sample.hand import Hand

DECIDED_BY = "demo"
_TREE = files(__package__).joinpath("tree.json")


async def lay_out(grove: Grove) -> bool:
    """Fill an empty workspace; one that has a garden already is left as it is."""
    gardener, researcher = Hand(grove, "gardener"), Hand(grove, "researcher")
    if "error" not in await gardener.call("get_node", nodeId="garden"):
        return False
    await gardener.do("import_merge", json=json.loads(_TREE.read_text("utf-8")), strategy="upsert")
    await gardener.do("snapshot_create", label="Spring plan")
    await _grow(gardener)
    await gardener.do("snapshot_create", label="Midsummer")
    await _look(researcher)
    await _stumble(gardener, researcher, Hand(grove, "sprinkler"))
    return True


async def _grow(gardener: Hand) -> None:
    """From the spring plan to midsummer: something is added, moved, changed, tagged and removed."""
    for crop in ("beetroot", "runner-bean", "french-bean"):
        await gardener.do("update_payload_property", nodeId=crop, propertyName="status", newValue="growing")
    await gardener.do("update_payload", nodeId="sweetcorn", patch={"status": "sown", "spacingCm": 40})
    flower = {"name": "Nasturtium", "variety": "Alaska", "sow": [4, 5], "harvest": [6, 7, 8, 9], "status": "growing"}
    await gardener.do("add_child", parentNodeId="bed-squash", payloadType="Crop", payloadProps=flower)
    await gardener.do("move_node", nodeId="leek", newParentId="bed-potatoes")
    await gardener.do("tag_node", nodeId="courgette", tags=["this-week"])
    await gardener.do("bookmark", nodeId="bed-glass", label="look here first")
    await _with_approval(gardener, "remove_node", nodeId="rocket")


async def _with_approval(gardener: Hand, tool: str, /, **arguments: str) -> None:
    """Ask, be allowed, and do it: what a person sees in the inbox as decided and used."""
    asked = (await gardener.change(tool, **arguments)).get("error", {})
    if "approvalId" in asked:
        await gardener.grove.approvals.decide(
            asked["approvalId"], approve=True, by=DECIDED_BY, reason="It has bolted; the bees have had it."
        )
    await gardener.do(tool, **arguments)


async def _look(researcher: Hand) -> None:
    await researcher.call("get_view", rootNodeId="garden", defaultExpanded=True, format="outline", maxTokens=400)
    await researcher.call("select_nodes", queryDsl="//Bed/Crop[harvest contains 7 and status = growing]")
    await researcher.call("query_by_tag", tag="this-week")
    await researcher.call("validate_tree", rulesetId="garden")
    await researcher.call("snapshot_diff", a="s1", b="s2")
    await researcher.call("shop_list_seeds", month=9)
    await researcher.call("time_get_current_time", timezone="UTC")


async def _stumble(gardener: Hand, researcher: Hand, sprinkler: Hand) -> None:
    """What agents are refused and why is part of the history too."""
    await sprinkler.change("update_payload", nodeId="shed", patch={"wet": True})
    await researcher.call("remove_node", nodeId="lettuce")
    await researcher.call("time_convert_time", source_timezone="UTC", time="12:00", target_timezone="UTC")
    await researcher.call("select_nodes", queryDsl="//Crop[status = = growing]")
    before = (await gardener.call("get_node", nodeId="t-thin")).get("version")
    done = {"nodeId": "t-thin", "propertyName": "status", "newValue": "done", "versionToken": before}
    await gardener.call("update_payload_property", **done, idempotencyKey="thinned")
    await gardener.call("update_payload_property", **done, idempotencyKey="thinned")
    await gardener.call("update_payload_property", **{**done, "newValue": "open"})

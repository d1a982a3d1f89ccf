"""A subtree as a resource: read as `get_subtree` gives it, and watched: one update for each commit that changes it."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from grove_kit import Hand
from pool.mcp.test_news import listener
from toolgrove import Config, Grove
from toolgrove.pool.resources import Watch
from waiting import eventually

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("era", ["auto", "legacy"], ids=["2026", "handshake"])
Json = dict[str, Any]
AGENTS: Json = {
    "editor": {"role": "editor", "tools": ["*"]},
    "watcher": {"tools": ["get_subtree"]},
    "narrow": {"tools": ["get_node"]},
}


@asynccontextmanager
async def tree() -> AsyncIterator[tuple[Grove, Hand]]:
    config = Config.model_validate({"workspace": {"payloadTypes": {"Note": {}}}, "agents": AGENTS})
    async with Grove(config) as grove:
        yield grove, Hand(await grove.agent("editor"))


async def add(hand: Hand, parent: str, name: str) -> str:
    added = await hand.ok("add_child", parentNodeId=parent, payloadType="Note", payloadProps={"name": name})
    return str(added["nodeId"])


@ERAS
async def test_a_subtree_is_read_like_get_subtree_and_only_by_those_who_have_it(era: str) -> None:
    async with tree() as (grove, hand):
        node = await add(hand, "root", "a")
        await add(hand, node, "b")
        async with listener(grove, "watcher", era) as ear:
            templates = (await ear.client.list_resource_templates()).resource_templates
            assert [one.uri_template for one in templates] == ["tree://{nodeId}"]
            assert (await ear.client.list_resources()).resources == []
            contents: Any = (await ear.client.read_resource(f"tree://{node}")).contents
            direct: Any = (await ear.client.call_tool("get_subtree", {"nodeId": node})).content
            assert (contents[0].mime_type, contents[0].text) == ("application/json", direct[0].text)
            with pytest.raises(MCPError, match="Resource not found"):
                await ear.client.read_resource("tree://nowhere")
            assert ear.client.server_capabilities.completions is None
        async with listener(grove, "narrow", era) as ear:
            assert ear.client.server_capabilities.resources is None
            with pytest.raises(MCPError, match="Resource not found"):
                await ear.client.read_resource(f"tree://{node}")
        read = [one["outcome"] for one in grove.audit if one["operation"] == "get_subtree"]
        assert read == ["success", "success", "failure"]


@ERAS
async def test_a_commit_that_changes_a_watched_subtree_is_told_once(era: str) -> None:
    async with tree() as (grove, hand):
        a, b = await add(hand, "root", "a"), await add(hand, "root", "b")
        leaf = await add(hand, a, "leaf")
        async with listener(grove, "watcher", era) as ear, listener(grove, "narrow", era) as narrow:
            if era == "legacy":
                with pytest.raises(MCPError, match="Resource not found"):
                    await narrow.watch(f"tree://{a}")
                with pytest.raises(MCPError, match="Resource not found"):
                    await ear.watch("tree://nowhere")
                await ear.watch(f"tree://{a}")
            else:
                assert await narrow.watch(f"tree://{a}") == frozenset()
                assert await ear.watch(f"tree://{a}", "tree://nowhere") == {f"tree://{a}"}
            uri = f"tree://{a}"
            changes: list[tuple[str, Json, int]] = [
                ("update_payload", {"nodeId": leaf, "patch": {"name": "x"}}, 1),
                ("update_payload", {"nodeId": b, "patch": {"name": "y"}}, 0),
                ("expand_node", {"nodeId": a}, 0),
                ("move_node", {"nodeId": leaf, "newParentId": b}, 1),
                ("move_node", {"nodeId": leaf, "newParentId": a}, 1),
                ("undo", {}, 1),
                ("remove_node", {"nodeId": a}, 1),
            ]
            told = [0]
            for name, arguments, updates in changes:
                await hand.ok(name, **arguments)
                told[0] += updates
                await eventually(lambda: ear.heard[uri] >= told[0])
                assert ear.heard[uri] == told[0], name
            assert narrow.heard[uri] == 0


@pytest.mark.parametrize("in_thread", [False, True])
async def test_whatever_happens_just_those_are_told_whose_subtree_changed(in_thread: bool) -> None:
    dice = random.Random(7)
    async with tree() as (grove, hand):
        nodes = ["root"]
        for number in range(12):
            nodes.append(await add(hand, dice.choice(nodes), str(number)))
        told: Counter[str] = Counter()
        agent = await grove.agent("watcher")
        for node in nodes:
            watch = Watch(f"tree://{node}", lambda node=node: told.update([node]))  # type: ignore[misc]
            assert await agent.watch_resource(watch) == {}
        if in_thread:
            grove._tree_tools.long_after = 0.0

        async def shown(node: str) -> str:
            found = await hand.agent.call("get_subtree", {"nodeId": node, "maxTokens": 100_000})
            return json.dumps({key: value for key, value in found.items() if key != "version"}, sort_keys=True)

        for number in range(25):
            before = {node: await shown(node) for node in nodes}
            told.clear()
            alive = [node for node in nodes if '"error"' not in before[node]]
            one, other = dice.choice(alive), dice.choice(alive)
            match dice.randrange(5):
                case 0:
                    await hand.ok("add_child", parentNodeId=one, payloadType="Note")
                case 1:
                    await hand("move_node", nodeId=one, newParentId=other)
                case 2:
                    await hand("remove_node", nodeId=one) if number % 4 == 0 else None
                case 3:
                    await hand("undo")
                case _:
                    await hand.ok("update_payload", nodeId=one, patch={"n": number})
            changed = {node for node in nodes if before[node] != await shown(node)}
            assert told == Counter(changed), number

"""In node concurrency an import rests on the nodes and lists that it touches, and on nothing else."""

from __future__ import annotations

import random
from typing import Any

import pytest

from grove_kit import config
from toolgrove import Grove

pytestmark = pytest.mark.anyio
AGENTS = {name: {"role": "editor"} for name in ("ann", "bob")}


async def call(agent: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await agent.call(tool, arguments)
    return answer


async def version(agent: Any) -> str:
    return str((await call(agent, "get_node", nodeId="root"))["version"])


@pytest.mark.parametrize("match_by", ["nodeId", "path"])
@pytest.mark.parametrize("seed", range(40))
async def test_an_import_is_stale_only_where_others_changed_what_it_touches(seed: int, match_by: str) -> None:
    draw = random.Random(seed)
    async with Grove(config(agents=AGENTS, workspace={"concurrency": "node"})) as grove:
        ann, bob = await grove.agent("ann"), await grove.agent("bob")
        nodes: list[str] = []
        for at in range(6):
            above = draw.choice(["root", *nodes])
            form = {"parentNodeId": above, "payloadType": "T", "payloadProps": {"name": f"n{at}", "v": 0}}
            nodes.append((await call(ann, "add_child", **form, versionToken=await version(ann)))["nodeId"])
        parents = {node: (await call(ann, "get_node", nodeId=node))["parentId"] for node in nodes}

        def path_of(node: str) -> list[str]:
            return [] if node == "root" else [*path_of(parents[node]), node]

        token = await version(ann)
        # The document updates a node, or adds one below it, and names the way there if it goes by paths.
        target, adds = draw.choice(nodes), draw.random() < 0.5
        leaf: dict[str, Any] = {"payloadType": "T", "payload": {"name": f"n{nodes.index(target)}"}}
        if adds:
            leaf["children"] = [{"payloadType": "T", "payload": {"name": "new"}}]
        else:
            leaf["payload"]["v"] = 1
        if match_by == "nodeId":
            document: dict[str, Any] = {"nodeId": target, **leaf}
            rests_nodes, rests_lists = {target}, {target} if adds else set()
        else:
            way = path_of(target)
            document = leaf
            for node in reversed(way[:-1]):
                name = {"name": f"n{nodes.index(node)}"}
                document = {"payloadType": "T", "payload": name, "children": [document]}
            rests_lists = {"root", *way[:-1], *({target} if adds else set())}
            rests_nodes = {node for node in nodes if parents[node] in rests_lists} | set(way)
        # Meanwhile somebody else does something, to that or to something else.
        other = draw.choice(nodes)
        match draw.choice(["update", "add", "remove"]):
            case "update":
                changed_nodes, changed_lists = {other}, set()
                done = await call(bob, "update_payload", nodeId=other, patch={"w": 1}, versionToken=await version(bob))
            case "add":
                form = {"parentNodeId": other, "payloadType": "T", "payloadProps": {"name": "x"}}
                done = await call(bob, "add_child", **form, versionToken=await version(bob))
                changed_nodes, changed_lists = {done["nodeId"]}, {other}
            case _:
                below = {node for node in nodes if other in path_of(node)}
                changed_nodes, changed_lists = below, {parents[one] for one in below}
                done = await call(bob, "remove_node", nodeId=other, versionToken=await version(bob))
        assert "error" not in done, done
        answer = await call(ann, "import_merge", json=document, strategy="upsert", matchBy=match_by, versionToken=token)
        meets = bool(rests_nodes & changed_nodes or rests_lists & changed_lists)
        assert (answer.get("error", {}).get("reason") == "stale_version") == meets, (answer, document, done)

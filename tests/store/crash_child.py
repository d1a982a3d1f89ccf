"""A process that writes through a grove until it is killed; it says what was acknowledged, and nothing else.

    python crash_child.py STORE ROUND

Every agent first repeats the request that it got no answer to (told on standard input), then goes on.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import anyio

from toolgrove import Config, Grove

AGENTS = ("ann", "bob", "carl", "dora")


def config(path: str) -> Config:
    agents = {name: {"role": "editor", "tools": ["*"]} for name in AGENTS}
    store = path if path.startswith("postgresql:") else f"sqlite:{path}"
    return Config.model_validate({"agents": agents, "workspace": {"store": store, "concurrency": "node"}})


async def request(agent: Any, key: str) -> dict[str, Any]:
    """One mutation under a key, with the version that is current."""
    while True:
        version = (await agent.call("get_node", {"nodeId": "root"}))["version"]
        form = {"parentNodeId": agent.name, "payloadType": "T", "payloadProps": {"key": key}}
        answer: dict[str, Any] = await agent.call("add_child", {**form, "versionToken": version, "idempotencyKey": key})
        if answer.get("error", {}).get("code") != "conflict":
            return answer


async def write(grove: Grove, name: str, number: int, unanswered: str | None) -> None:
    agent, at = await grove.agent(name), 0
    while True:
        key = unanswered or f"{name}-{number}-{at}"
        unanswered = None
        os.write(1, f"ask {name} {key}\n".encode())
        answer = await request(agent, key)
        os.write(1, f"got {name} {key} {answer['nodeId']}\n".encode())
        at += 1


async def main(path: str, number: int) -> None:
    unanswered: dict[str, str] = json.loads(sys.stdin.readline())
    async with Grove(config(path)) as grove:
        if number == 0:
            ann = await grove.agent("ann")
            homes = [{"nodeId": name, "payloadType": "Home", "payload": {}} for name in AGENTS]
            version = (await ann.call("get_node", {"nodeId": "root"}))["version"]
            form = {"json": {"items": homes}, "strategy": "upsert", "versionToken": version}
            assert "error" not in await ann.call("import_merge", form)
        async with anyio.create_task_group() as group:
            for name in AGENTS:
                group.start_soon(write, grove, name, number, unanswered.get(name))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], int(sys.argv[2]))

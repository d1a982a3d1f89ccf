"""A process that makes approved changes through a grove until it is killed; it says what it is about to do.

python approval_crash_child.py FOLDER ROUND
"""

from __future__ import annotations

import os
import sys
from itertools import count
from typing import Any

import anyio

from toolgrove import Config, Grove


def config(folder: str) -> Config:
    agents = {"careful": {"role": "editor", "tools": ["*"], "approve": ["add_child"]}}
    workspace = {"store": f"sqlite:{folder}/grove.db"}
    return Config.model_validate({"agents": agents, "workspace": workspace, "state": folder})


async def request(agent: Any, key: str) -> dict[str, Any]:
    """One addition, with the version that is current."""
    version = (await agent.call("get_node", {"nodeId": "root"}))["version"]
    form = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {"key": key}, "versionToken": version}
    answer: dict[str, Any] = await agent.call("add_child", form)
    return answer


async def main(folder: str, number: str) -> None:
    async with Grove(config(folder)) as grove:
        agent = await grove.agent("careful")
        for at in count():
            key = f"{number}-{at}"
            asked = (await request(agent, key))["error"]["approvalId"]
            await grove.approvals.decide(asked, approve=True, by="grace")
            os.write(1, f"claims {key}\n".encode())
            os.write(1, f"added {key} {(await request(agent, key))['nodeId']}\n".encode())


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2])

"""Open a tree workspace in this process and let an agent change it."""

import asyncio

from toolgrove import Grove


async def main() -> None:
    async with Grove() as grove:
        agent = await grove.agent("editor")
        root = await agent.call("get_node", {"nodeId": "root"})
        task = {"name": "Water the plants"}
        change = {"parentNodeId": "root", "payloadType": "Task", "payloadProps": task, "versionToken": root["version"]}
        await agent.call("add_child", change)
        found = await agent.call("select_nodes", {"queryDsl": "name contains plants"})
        print([node["payload"] for node in found["items"]])


if __name__ == "__main__":
    asyncio.run(main())

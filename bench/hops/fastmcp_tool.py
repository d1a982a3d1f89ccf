"""FastMCP with a tool that reads a node out of a dictionary, as its documentation shows it, answering in plain JSON.

Runs in an environment of its own, so it may import nothing of ours.
"""

from typing import Any

from fastmcp import FastMCP

NODES: dict[str, dict[str, Any]] = {}


def http(port: str, era: str, size: str) -> None:
    server = FastMCP("peer")
    for number in range(int(size)):
        node_id = f"i{number}"
        payload = {"name": "Room", "size": number, "status": "open", "note": "x" * 40, "price": 10.5}
        NODES[node_id] = {"nodeId": node_id, "parentId": "root", "payloadType": "T", "payload": payload}

    @server.tool
    def get_node(nodeId: str) -> dict[str, Any]:
        """Read one node."""
        return NODES[nodeId]

    server.run(
        transport="http",
        host="127.0.0.1",
        port=int(port),
        path="/mcp",
        json_response=True,
        show_banner=False,
        log_level="ERROR",
    )

"""An agent at work beside the browser: an MCP client that always sends its latest version."""

from __future__ import annotations

from typing import Any

import httpx2

from e2e.wire import call_body, messages, modern_headers
from mcp_text import told_on_wire
from waiting import DEADLINE
from web.gateway import Gateway

READS = ("get_", "list_", "search", "select_", "query_", "snapshot_list", "snapshot_diff")


class Hand:
    """Calls tools with the agent's own token, over the same endpoint as any client."""

    def __init__(self, gateway: Gateway, agent: str, token: str | None = None) -> None:
        self.agent = agent
        headers = gateway.headers(agent) if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx2.Client(base_url=gateway.base, headers=headers, timeout=DEADLINE)

    def close(self) -> None:
        self._http.close()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The answer, be it a result or an error."""
        if not tool.startswith((*READS, "up_", "order", "spawn_")) and "versionToken" not in arguments:
            arguments["versionToken"] = self.version()
        body, headers = call_body(tool, arguments), modern_headers("tools/call", tool)
        response = self._http.post(f"/agents/{self.agent}/mcp", json=body, headers=headers)
        result = messages(response)[-1]["result"]
        return told_on_wire(result)

    def patient(self, tool: str, **arguments: Any) -> list[Any]:
        """All that a client hears which sent a progress token: what is said meanwhile, and the answer."""
        arguments.setdefault("versionToken", self.version())
        body, headers = call_body(tool, arguments, _meta={"progressToken": 7}), modern_headers("tools/call", tool)
        return messages(self._http.post(f"/agents/{self.agent}/mcp", json=body, headers=headers))

    def status(self, tool: str, **arguments: Any) -> int:
        """The status of the answer."""
        body, headers = call_body(tool, arguments), modern_headers("tools/call", tool)
        return self._http.post(f"/agents/{self.agent}/mcp", json=body, headers=headers).status_code

    def ok(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = self.call(tool, **arguments)
        assert "error" not in answer, answer
        return answer

    def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        error: dict[str, Any] = self.call(tool, **arguments)["error"]
        return error

    def version(self) -> str:
        return str(self.call("get_node", nodeId="root")["version"])

    def plant(self, document: dict[str, Any]) -> None:
        """Put a subtree below the root."""
        self.ok("import_merge", json=document, strategy="upsert")

    def payload(self, node_id: str) -> dict[str, Any]:
        payload: dict[str, Any] = self.ok("get_node", nodeId=node_id)["payload"]
        return payload


def branch(node_id: str, *children: dict[str, Any], type: str = "Thing", **payload: Any) -> dict[str, Any]:
    """A node with what is below it, as a document writes it."""
    return {"nodeId": node_id, "payloadType": type, "payload": {"name": node_id, **payload}, "children": [*children]}

"""MCP as bytes: requests of both eras as a raw HTTP client sends them."""

import json
from typing import Any

import httpx2

from e2e.servers import Address

MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"
ERAS = (MODERN, "legacy")
NO_IDS: tuple[Any, ...] = (None, 1.5, [], {}, True)
"""What no request may have as its id."""
JSON_OR_STREAM = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def envelope(**capabilities: Any) -> dict[str, Any]:
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }


def modern_body(method: str, params: dict[str, Any] | None = None, id: Any = 1, **capabilities: Any) -> dict[str, Any]:
    params = params or {}
    meta = envelope(**capabilities) | params.get("_meta", {})
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params | {"_meta": meta}}


def modern_headers(method: str, name: str | None = None) -> dict[str, str]:
    headers = JSON_OR_STREAM | {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    return headers if name is None else headers | {"Mcp-Name": name}


def call_body(name: str, arguments: Any = None, id: Any = 1, **params: Any) -> dict[str, Any]:
    return modern_body("tools/call", {"name": name, "arguments": arguments or {}} | params, id)


async def modern_call(client: httpx2.AsyncClient, address: Address, name: str, arguments: Any, id: Any = 1) -> Any:
    headers = modern_headers("tools/call", name)
    response = await client.post(address.mcp, json=call_body(name, arguments, id), headers=headers)
    return messages(response)[-1]


def messages(response: httpx2.Response) -> list[Any]:
    """The JSON-RPC messages of an answer, plain or streamed."""
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        return [
            json.loads(line[5:]) for line in response.text.split("\n") if line.startswith("data:") and line[5:].strip()
        ]
    return [response.json()]


class Handshake:
    """One client of the older era, by hand."""

    def __init__(self, client: httpx2.AsyncClient, address: Address, **capabilities: Any) -> None:
        self.client = client
        self.address = address
        self.capabilities = capabilities
        self.headers = dict(JSON_OR_STREAM)

    async def __aenter__(self) -> "Handshake":
        info = {"name": "raw", "version": "1"}
        params = {"protocolVersion": HANDSHAKE, "capabilities": self.capabilities, "clientInfo": info}
        response = await self.request("initialize", params, id=0)
        self.headers["Mcp-Session-Id"] = response.headers["mcp-session-id"]
        self.headers["MCP-Protocol-Version"] = HANDSHAKE
        await self.notify("notifications/initialized")
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.client.delete(self.address.mcp, headers=self.headers)

    async def request(self, method: str, params: Any = None, id: Any = 1) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
        return await self.client.post(self.address.mcp, json=body, headers=self.headers)

    async def notify(self, method: str, params: Any = None) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        return await self.client.post(self.address.mcp, json=body, headers=self.headers)

    async def call(self, name: str, arguments: Any, id: Any = 1) -> Any:
        return messages(await self.request("tools/call", {"name": name, "arguments": arguments}, id))[-1]

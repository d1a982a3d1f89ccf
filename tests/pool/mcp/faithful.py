"""An MCP server over stdio that says what a file says: `python -I -S faithful.py FILE`; the standard library only.

The file holds `tools`, the definitions to list, and `results`, what a call of each answers. It speaks both eras.
"""

import json
import sys
from typing import Any

MODERN, LEGACY = "2026-07-28", "2025-11-25"


def answer(method: str, params: dict[str, Any], said: dict[str, Any]) -> dict[str, Any] | None:
    capabilities: dict[str, Any] = {"capabilities": {"tools": {}}}
    if method == "server/discover":
        return {"supportedVersions": [MODERN], "ttlMs": 0, "cacheScope": "private", **capabilities}
    if method == "initialize":
        return {"protocolVersion": LEGACY, "serverInfo": {"name": "faithful", "version": "1"}, **capabilities}
    if method == "tools/list":
        return {"tools": said["tools"], "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/call":
        result: dict[str, Any] = said["results"][params["name"]]
        return result
    return None


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        said = json.load(file)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params") or {}, said)
        told: dict[str, Any] = {"result": {"resultType": "complete", **result}} if result is not None else {}
        error = {"error": {"code": -32601, "message": "Method not found"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **(told or error)}), flush=True)


if __name__ == "__main__":
    main()

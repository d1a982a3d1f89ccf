"""An MCP server over stdio that says what a file says: `python -I -S faithful.py FILE`; the standard library only.

The file holds `tools`, the definitions to list, and `results`, what a call of each answers. It may hold `resources` and
`templates` to list, and `contents`, what reading each address answers; and `prompts` with what each of them is, `told`;
`suggested` are the values for the argument of a prompt or template.
It speaks both eras. Every address that it is asked for is a line of the file `asked`, where that is named.
"""

import json
import sys
from typing import Any

MODERN, LEGACY = "2026-07-28", "2025-11-25"


def answer(method: str, params: dict[str, Any], said: dict[str, Any]) -> dict[str, Any] | None:
    offered: dict[str, Any] = {"tools": {}, **({"resources": {}} if "contents" in said else {})}
    offered |= {"prompts": {}} if "prompts" in said else {}
    offered |= {"completions": {}} if "suggested" in said else {}
    capabilities: dict[str, Any] = {"capabilities": offered}
    if method == "server/discover":
        return {"supportedVersions": [MODERN], "ttlMs": 0, "cacheScope": "private", **capabilities}
    if method == "initialize":
        return {"protocolVersion": LEGACY, "serverInfo": {"name": "faithful", "version": "1"}, **capabilities}
    if method == "tools/list":
        return {"tools": said["tools"], "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/call":
        result: dict[str, Any] = said["results"][params["name"]]
        return result
    if method == "resources/list":
        return {"resources": said["resources"], "ttlMs": 0, "cacheScope": "private"}
    if method == "resources/templates/list" and "templates" in said:
        return {"resourceTemplates": said["templates"], "ttlMs": 0, "cacheScope": "private"}
    if method == "prompts/list":
        return {"prompts": said["prompts"], "ttlMs": 0, "cacheScope": "private"}
    if method == "prompts/get" and params["name"] in said["told"]:
        filled = json.dumps(said["told"][params["name"]])
        for name, value in (params.get("arguments") or {}).items():
            filled = filled.replace("{" + name + "}", value)
        prompt: dict[str, Any] = json.loads(filled)
        return prompt
    if method == "completion/complete":
        about = params["ref"].get("name") or params["ref"]["uri"]
        found = [one for one in said["suggested"][about] if one.startswith(params["argument"]["value"])]
        return {"completion": {"values": found, "total": len(found), "hasMore": False}}
    if method == "resources/read":
        if "asked" in said:
            with open(said["asked"], "a", encoding="utf-8") as file:
                file.write(params["uri"] + "\n")
        read: dict[str, Any] | None = said["contents"].get(params["uri"])
        return read
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
        code = -32002 if message["method"] == "resources/read" else -32601
        error = {"error": {"code": code, "message": "There is none"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **(told or error)}), flush=True)


if __name__ == "__main__":
    main()

"""The server `test` of the conformance gateway: what an apcore module cannot say, relayed from an MCP server's mouth.

`python -I -S conformance_upstream.py`: its tool `image_content` is the pool's `test_image_content`, and so on.
"""

import base64
import json
import sys
from typing import Any

PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c6360f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
    )
).decode()
WAV = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00").decode()


def resource(uri: str, text: str, kind: str) -> dict[str, object]:
    return {"type": "resource", "resource": {"uri": uri, "text": text, "mimeType": kind}}


IMAGE: dict[str, object] = {"type": "image", "data": PNG, "mimeType": "image/png"}
CONTENT: dict[str, list[dict[str, object]]] = {
    "image_content": [IMAGE],
    "audio_content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}],
    "embedded_resource": [resource("test://embedded-resource", "This is an embedded resource content.", "text/plain")],
    "multiple_content_types": [
        {"type": "text", "text": "Multiple content types test:"},
        IMAGE,
        resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ],
    "tool_with_logging": [{"type": "text", "text": "Tool with logging executed."}],
    "trigger_prompt_change": [{"type": "text", "text": "Told of other prompts."}],
}
LOGGED = ("Tool execution started", "Tool processing data", "Tool execution completed")
PROMPTS = {
    "simple_prompt": [],
    "prompt_with_arguments": ["arg1", "arg2"],
    "prompt_with_embedded_resource": ["resourceUri"],
    "prompt_with_image": [],
}
OPENING: dict[str, object] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {
        "tools": {},
        "resources": {"subscribe": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "logging": {},
    },
    "serverInfo": {"name": "content", "version": "1"},
}


def answer(method: str, params: dict[str, object]) -> dict[str, object]:
    if method == "initialize":
        return OPENING
    if method == "tools/list":
        schema = {"type": "object", "properties": {}}
        return {"tools": [{"name": name, "description": f"Answers {name}.", "inputSchema": schema} for name in CONTENT]}
    if method == "resources/list":
        listed = [("static-text", "text/plain"), ("static-binary", "image/png"), ("watched-resource", "text/plain")]
        return {"resources": [{"uri": f"test://{name}", "name": name, "mimeType": kind} for name, kind in listed]}
    if method == "resources/templates/list":
        template = {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}
        return {"resourceTemplates": [template]}
    if method == "prompts/list":
        return {"prompts": [prompt(name, arguments) for name, arguments in PROMPTS.items()]}
    if method == "prompts/get":
        given: Any = params.get("arguments") or {}
        return {"messages": [{"role": "user", "content": block} for block in prompted(str(params["name"]), given)]}
    if method == "completion/complete":
        return {"completion": {"values": ["paris", "park", "party"], "total": 150, "hasMore": True}}
    if method == "resources/read":
        return read(str(params["uri"]))
    return {"content": CONTENT[str(params["name"])]} if method == "tools/call" else {}


def prompt(name: str, arguments: list[str]) -> dict[str, object]:
    wanted = [{"name": argument, "required": True} for argument in arguments]
    return {"name": name, "description": f"The prompt {name}", "arguments": wanted}


def prompted(name: str, given: dict[str, str]) -> list[dict[str, object]]:
    if name == "prompt_with_arguments":
        return [{"type": "text", "text": f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"}]
    if name == "prompt_with_embedded_resource":
        embedded = resource(given["resourceUri"], "Embedded resource content for testing.", "text/plain")
        return [embedded, {"type": "text", "text": "Please process the embedded resource above."}]
    if name == "prompt_with_image":
        return [IMAGE, {"type": "text", "text": "Please analyze the image above."}]
    return [{"type": "text", "text": "This is a simple prompt for testing."}]


def read(uri: str) -> dict[str, object]:
    if uri == "test://static-binary":
        return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": PNG}]}
    if uri.startswith("test://template/") and uri.endswith("/data"):
        number = uri.split("/")[3]
        data = json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": data}]}
    if uri in ("test://static-text", "test://watched-resource"):
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": "This is the static text resource."}]}
    raise LookupError(uri)


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("params", {}).get("name") == "tool_with_logging":
            for text in LOGGED:
                log: Any = {"method": "notifications/message", "params": {"level": "info", "data": text}}
                print(json.dumps({"jsonrpc": "2.0", **log}), flush=True)
        if message.get("params", {}).get("name") == "trigger_prompt_change":
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}), flush=True)
        if "id" in message:
            try:
                told: dict[str, object] = {"result": answer(message["method"], message.get("params") or {})}
            except LookupError:
                told = {"error": {"code": -32002, "message": "Resource not found"}}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}), flush=True)

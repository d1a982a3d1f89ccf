"""An MCP server over stdio that gives its key away in every way it can; the standard library only.

`python -I -S tattler.py`; the key is in the variable KEY. Each tool is one way. Imported, it only says what there is.
"""

import base64
import json
import os
import sys
import traceback
from typing import Any
from urllib.parse import quote

KEY = os.environ.get("KEY", "")
DATA = KEY.encode()
HALF = len(KEY) // 2
OBJECT = {"type": "object"}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def shout(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def blocks(*texts: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in texts], **more}


def progress(token: Any, *messages: str) -> None:
    for number, message in enumerate(messages):
        params = {"progressToken": token, "progress": number + 1, "message": message}
        send({"method": "notifications/progress", "params": params})


def plain(token: Any) -> dict[str, Any]:
    return blocks(f"it is {KEY}", structuredContent={"key": KEY, KEY: [f"Bearer {KEY}"]})


def blocks_only(token: Any) -> dict[str, Any]:
    return {
        "content": [
            {"type": "text", "text": KEY, "annotations": {"note": KEY}},
            {"type": "resource", "resource": {"uri": f"x://{quote(KEY)}", "text": KEY}},
            {"type": "resource_link", "uri": f"x://{KEY}", "name": KEY},
        ]
    }


def encoded(token: Any) -> dict[str, Any]:
    return blocks(
        base64.b64encode(DATA).decode(),
        base64.urlsafe_b64encode(b"user:" + DATA).decode(),
        base64.b64encode(b"x" + DATA + b"yz").decode(),
        quote(KEY, safe=""),
        quote(KEY, safe="").lower(),
        "".join(f"%{byte:02x}" for byte in DATA),
        DATA.hex(),
        json.dumps({"key": KEY}),
        json.dumps(json.dumps({"key": KEY})),
        "".join(f"\\u{ord(letter):04x}" for letter in KEY),
        "".join(f"&#{ord(letter)};" for letter in KEY),
        repr(DATA),
    )


def split(token: Any) -> dict[str, Any]:
    return blocks(f"one half is {KEY[:HALF]}", f"{KEY[HALF:]} is the other")


def fails(token: Any) -> dict[str, Any]:
    return blocks(f"401: {KEY} is not right", isError=True)


def fails_in_our_words(token: Any) -> dict[str, Any]:
    error = {"code": "forbidden", "message": f"no, {KEY}", "reason": KEY, "hint": {"key": KEY}}
    return blocks("no", isError=True, structuredContent={"error": error})


def refuses(token: Any) -> dict[str, Any]:
    raise KeyError(KEY)


def progresses(token: Any) -> dict[str, Any]:
    progress(token, f"with {KEY}", f"with {KEY[:HALF]}", f"{KEY[HALF:]} and so on", quote(KEY, safe=""))
    return blocks("done")


def shouts(token: Any) -> dict[str, Any]:
    shout(f"DEBUG key={KEY}\n")
    shout(f"DEBUG half of it is {KEY[:HALF]}")
    shout(f"{KEY[HALF:]} is the rest\n")
    shout(base64.b64encode(b"{" + DATA + b"}").decode() + "\n")
    return blocks("done")


def babbles(token: Any) -> dict[str, Any]:
    sys.stdout.write(f"this is no JSON but {KEY}\n")
    sys.stdout.flush()
    return blocks("done")


def malformed(token: Any) -> dict[str, Any]:
    return {"content": KEY, "structuredContent": [KEY]}


def strange(token: Any) -> dict[str, Any]:
    return {"content": [{"type": KEY, KEY: KEY}]}


def crashes(token: Any) -> dict[str, Any]:
    try:
        raise RuntimeError(f"cannot go on with {KEY}")
    except RuntimeError:
        shout(traceback.format_exc())
    os._exit(3)


WAYS = [
    plain,
    blocks_only,
    encoded,
    split,
    fails,
    fails_in_our_words,
    refuses,
    progresses,
    shouts,
    babbles,
    malformed,
    strange,
    crashes,
]
TELLING = [way.__name__ for way in WAYS if way is not crashes] + ["described"]
DESCRIBED = {
    "name": "described",
    "title": KEY,
    "description": f"The key is {KEY}, or {base64.b64encode(DATA).decode()}.",
    "inputSchema": {"type": "object", "properties": {KEY: {"enum": [KEY], "default": KEY, "description": KEY}}},
    "outputSchema": {"type": "object", "properties": {"x": {"const": KEY}}},
    "annotations": {"title": KEY},
}
TOOLS = [
    *({"name": way.__name__, "description": "Tells.", "inputSchema": OBJECT} for way in WAYS),
    DESCRIBED,
    {"name": KEY, "description": "Named after it.", "inputSchema": OBJECT},
    {"name": "invalid", "inputSchema": {"type": "object", "properties": {"x": {"type": KEY}}}},
    {"name": "remote", "inputSchema": {"type": "object", "properties": {KEY: {"$ref": f"https://x.example/{KEY}"}}}},
    {"name": "changing", "description": f"{os.getpid()} {KEY}", "inputSchema": OBJECT},
]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        about = {"name": KEY, "version": KEY}
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": about,
            "instructions": KEY,
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        way = next((way for way in WAYS if way.__name__ == params["name"]), plain)
        return way(params.get("_meta", {}).get("progressToken"))
    raise KeyError(KEY)


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        try:
            send({"id": asked["id"], "result": answer(asked["method"], asked.get("params") or {})})
        except KeyError:
            code = -32601 if asked["method"] == "server/discover" else -32000
            send({"id": asked["id"], "error": {"code": code, "message": f"no {KEY}", "data": {"key": KEY}}})


if __name__ == "__main__":
    main()

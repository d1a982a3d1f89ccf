"""A loopback HTTP server that echoes the credentials of a request in every part of its answer that there is."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import quote

JSON = "content-type: application/json"
TEXT = "content-type: text/plain; charset=utf-8"


@dataclass
class Echo:
    """What the server was sent, and where it listens."""

    port: int = 0
    keys: list[str] = field(default_factory=list)


Way = Callable[[str], bytes]


def whole(status: str, kind: str, body: str | bytes, *more: str) -> bytes:
    data = body if isinstance(body, bytes) else body.encode()
    head = "\r\n".join((f"HTTP/1.1 {status}", kind, f"content-length: {len(data)}", "connection: close", *more))
    return head.encode("latin-1") + b"\r\n\r\n" + data


def _chunked(key: str) -> bytes:
    half = len(key) // 2
    head = f"HTTP/1.1 200 OK\r\n{TEXT}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n".encode()
    parts = [f"the key is {key[:half]}".encode(), key[half:].encode()]
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


WAYS: dict[str, Way] = {
    "json": lambda key: whole("200 OK", JSON, json.dumps({"authorization": f"Bearer {key}", key: [key]})),
    "text": lambda key: whole("200 OK", TEXT, f"your key is {key}"),
    "base64": lambda key: whole("200 OK", JSON, json.dumps({"basic": base64.b64encode(f"me:{key}".encode()).decode()})),
    "quoted": lambda key: whole("200 OK", TEXT, f"/next?key={quote(key, safe='')}&k={quote(key, safe='').lower()}"),
    "hex": lambda key: whole("200 OK", TEXT, key.encode().hex()),
    "escaped": lambda key: whole("200 OK", TEXT, json.dumps(json.dumps({"key": key}))),
    "chunked": _chunked,
    "gzip": lambda key: whole("200 OK", JSON, gzip.compress(json.dumps({"k": key}).encode()), "content-encoding: gzip"),
    "header": lambda key: whole("200 OK", f"content-type: text/{key}", key, f"x-key: {key}", f"set-cookie: k={key}"),
    "kind": lambda key: whole("200 OK", f"content-type: application/{key}", b"\0\1"),
    "unauthorized": lambda key: whole("401 Unauthorized", JSON, json.dumps({"error": {"message": f"{key} is wrong"}})),
    "forbidden": lambda key: whole("403 Forbidden", TEXT, f"{key} may not"),
    "missing": lambda key: whole("404 Not Found", "content-type: text/html", f"<p>{key}</p>"),
    "broken": lambda key: whole("500 Oops", TEXT, f"Traceback\n  key={key}"),
    "busy": lambda key: whole("429 Slow", JSON, json.dumps({"detail": key}), f"retry-after: {key}"),
    "reason": lambda key: whole(f"418 {key}", TEXT, key),
    "redirect": lambda key: whole("302 Found", TEXT, key, f"location: https://elsewhere.example/?key={key}"),
    "redirect_script": lambda key: whole("302 Found", TEXT, key, f"location: javascript:{key}"),
    "redirect_here": lambda key: whole("307 Go", TEXT, "", f"location: /tell/text?from={quote(key, safe='')}"),
    "not_json": lambda key: whole("200 OK", JSON, f'{{"key": {key}'),
    "not_http": lambda key: f"HTTP/9 {key}\r\n\r\n".encode(),
    "bad_header": lambda key: f"HTTP/1.1 200 OK\r\n{key}\r\n\r\n".encode(),
    "cut": lambda key: whole("200 OK", TEXT, key)[:-3],
    "silent": lambda key: b"",
    "large": lambda key: whole("200 OK", TEXT, key * 200_000),
    "bad_gzip": lambda key: whole("200 OK", TEXT, key, "content-encoding: gzip"),
}


def _mcp(key: str, asked: dict[str, object]) -> bytes:
    """The answer of an MCP server behind the same door."""
    number, method = asked.get("id"), asked.get("method")
    params = asked.get("params")
    if number is None:
        return whole("202 Accepted", JSON, "")

    def reply(result: object) -> bytes:
        return whole("200 OK", JSON, json.dumps({"jsonrpc": "2.0", "id": number, "result": result}))

    if method == "server/discover":
        error = {"code": -32601, "message": key}
        return whole("404 Not Found", JSON, json.dumps({"jsonrpc": "2.0", "id": number, "error": error}))
    if method == "initialize":
        about = {"name": key, "version": "1"}
        return reply({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about})
    if method == "tools/list":
        names = ("tell", "reject", "status", "refuse", "redirect", "stream", "nonsense", "cut")
        return reply({"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]})
    name = params.get("name") if isinstance(params, dict) else ""
    error = {"code": -32000, "message": f"no {key}", "data": key}
    half = len(key) // 2
    told = {"content": [{"type": "text", "text": key}], "structuredContent": {"key": key}}
    if name == "stream":
        meta = params.get("_meta") if isinstance(params, dict) else None
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        messages: list[dict[str, object]] = [
            {
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 1, "message": key[:half]},
            },
            {
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 2, "message": key[half:]},
            },
            {"id": number, "result": told},
        ]
        data = "".join(f": {key}\nid: {key}\ndata: {json.dumps({'jsonrpc': '2.0', **one})}\n\n" for one in messages)
        return whole("200 OK", "content-type: text/event-stream", data)
    answers: dict[str, bytes] = {
        "tell": reply(told),
        "reject": whole("200 OK", JSON, json.dumps({"jsonrpc": "2.0", "id": number, "error": error})),
        "status": whole(f"500 {key}", TEXT, key),
        "refuse": whole("401 Unauthorized", TEXT, key, f"www-authenticate: Bearer {key}"),
        "redirect": whole("302 Found", TEXT, key, f"location: https://elsewhere.example/{key}"),
        "nonsense": whole("200 OK", f"content-type: {key}", key),
        "cut": whole("200 OK", JSON, key)[:-2],
    }
    return answers[str(name)]


@asynccontextmanager
async def echo() -> AsyncIterator[Echo]:
    """The server, for as long as the test runs."""
    state = Echo()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            target = head.split(" ")[1]
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            fields = {name.lower(): value for name, value in fields.items()}
            body = await reader.readexactly(int(fields.get("content-length", "0")))
            key = fields.get("authorization", "").removeprefix("Bearer ")
            state.keys.append(key)
            way = target.partition("?")[0].rpartition("/")[2]
            writer.write(_mcp(key, json.loads(body)) if way == "mcp" else WAYS[way](key))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    state.port = server.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        server.close()
        await server.wait_closed()

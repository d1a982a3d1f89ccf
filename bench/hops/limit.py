"""What no proxy here can beat: passes the bytes of a request on and those of its answer back."""

import asyncio
import subprocess
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bench.hop import ROOT, child


def http(port: str, era: str, upstream: str) -> None:
    host, _, path = upstream.removeprefix("http://").partition("/")
    name, _, number = host.partition(":")
    kept: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def forward(request: Request) -> Response:
        body = await request.body()
        passed = "".join(
            f"{key}: {value}\r\n"
            for key, value in request.headers.items()
            if key.startswith("mcp-") or key in ("accept", "content-type")
        )
        head = f"POST /{path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {len(body)}\r\n{passed}\r\n"
        reader, writer = kept.pop() if kept else await asyncio.open_connection(name, int(number))
        writer.write(head.encode() + body)
        status, headers, answer = await _answer(reader)
        kept.append((reader, writer))
        wanted = {key: value for key, value in headers.items() if key in ("content-type", "mcp-session-id")}
        return Response(answer, status, wanted)

    app = Starlette(routes=[Route("/mcp", forward, methods=["POST"])])
    uvicorn.run(app, port=int(port), log_config=None, access_log=False, http="h11", loop="asyncio")


async def _answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    start, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {key.strip().lower(): value.strip() for key, _, value in (line.partition(":") for line in lines if line)}
    status = int(start.split(" ")[1])
    if "content-length" in headers:
        return status, headers, await reader.readexactly(int(headers["content-length"]))
    parts = []
    while headers.get("transfer-encoding") == "chunked":
        size = int(await reader.readline(), 16)
        part = await reader.readexactly(size + 2)
        if not size:
            break
        parts.append(part[:-2])
    return status, headers, b"".join(parts)


def stdio(era: str, upstream: str) -> None:
    """One line in, one line out: only for one request at a time."""
    with subprocess.Popen(child(era), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in sys.stdin.buffer:
            process.stdin.write(line)
            process.stdin.flush()
            if b'"id"' in line:
                sys.stdout.buffer.write(process.stdout.readline())
                sys.stdout.buffer.flush()

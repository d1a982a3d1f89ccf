"""FastMCP's proxy, as its documentation shows it; to a child process it keeps one connection."""

from typing import Any

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

from bench.hop import ROOT, STDIO, child


def _proxy(era: str, upstream: str) -> Any:
    if upstream != STDIO:
        return create_proxy(upstream)
    program, *args = child(era)
    return create_proxy(StdioTransport(program, args, cwd=str(ROOT)))


def http(port: str, era: str, upstream: str) -> None:
    proxy = _proxy(era, upstream)
    proxy.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False, log_level="ERROR")


def stdio(era: str, upstream: str) -> None:
    _proxy(era, upstream).run(transport="stdio", show_banner=False, log_level="ERROR")

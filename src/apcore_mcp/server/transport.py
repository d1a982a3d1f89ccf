"""The HTTP transports by their names, and the socket that they listen on."""

import logging
import socket

from mcp_serve.endpoint import Endpoint
from mcp_serve.http import Sse, StreamableHTTP

logger = logging.getLogger(__name__)


def http_transport(name: str, endpoint: Endpoint) -> StreamableHTTP | Sse:
    """The routes of the transport, over the endpoint."""
    if name == "sse":
        logger.warning("SSE transport is deprecated; use streamable-http instead")
        return Sse(endpoint)
    return StreamableHTTP(endpoint)


def listen(host: str, port: int) -> socket.socket:
    """A socket on the address, for names of either IP version."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)

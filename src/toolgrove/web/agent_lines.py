"""Finds what answers plain requests of MCP at an agent's address."""

from __future__ import annotations

from starlette.types import Scope

from mcp_serve.lane import Line
from toolgrove.web.agent_endpoints import AgentEndpoints
from toolgrove.web.identity import Principal
from toolgrove.web.streams import Streams

_PREFIX, _SUFFIX = "/agents/", "/mcp"


class AgentLines:
    """`/agents/{agent}/mcp`: only for that agent and the operator, and until the streams are closed."""

    def __init__(self, endpoints: AgentEndpoints, streams: Streams) -> None:
        self._endpoints, self._streams = endpoints, streams

    def line(self, scope: Scope) -> Line | None:
        """What answers plain requests of MCP at this address, for whoever asks."""
        return self.at(scope["path"], scope["user"])

    def at(self, path: str, user: Principal) -> Line | None:
        """The same by the path alone."""
        if not path.startswith(_PREFIX) or not path.endswith(_SUFFIX) or self._streams.is_closed:
            return None
        name = path[len(_PREFIX) : -len(_SUFFIX)]
        opened = self._endpoints.find(name) if user.may_be(name) else None
        return None if opened is None else opened.sessions

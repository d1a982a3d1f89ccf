"""HTTP tools: single calls and the operations of OpenAPI documents, under one policy."""

from toolgrove.pool.http.dialer import Network
from toolgrove.pool.http.source import HttpSource

__all__ = ["HttpSource", "Network"]

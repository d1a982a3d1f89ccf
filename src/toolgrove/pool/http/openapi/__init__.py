"""OpenAPI 3.0 and 3.1 documents: every operation becomes a tool."""

from toolgrove.pool.http.openapi.operations import read_document

__all__ = ["read_document"]

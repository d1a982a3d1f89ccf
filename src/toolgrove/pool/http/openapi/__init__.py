"""OpenAPI 3.0 and 3.1 documents: every operation becomes a tool, or says why it cannot.

- ``document``: read from a file within bounds, its own references followed
- ``operations``: every operation with the name and the policy of a tool
- ``parameters``: parameters and body as the arguments of a tool
- ``schema``: OpenAPI schemas as self-contained JSON Schema
"""

from toolgrove.pool.http.openapi.operations import read_document

__all__ = ["read_document"]

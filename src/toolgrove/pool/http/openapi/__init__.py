"""OpenAPI 3.0 to 3.2 and Swagger 2.0: every operation becomes a tool, or says why it cannot.

- ``credentials``: what the operator should add so that calls are let in
- ``document``: read within bounds, its own references followed
- ``operations``: every operation with the name and the policy of a tool
- ``own_name``: what an operation is called
- ``parameters``: parameters and body as the arguments of a tool
- ``request_body``: the body as one argument
- ``schema``: OpenAPI schemas as self-contained JSON Schema
- ``selection``: which operations are taken over
- ``styles``: how lists and objects are written in a query and in a form
- ``swagger``: Swagger 2.0 in the words of OpenAPI 3.0
- ``unfit``: why an operation cannot be a tool
"""

from toolgrove.pool.http.openapi.operations import ReadDocument, read_document

__all__ = ["ReadDocument", "read_document"]

"""HTTP tools: single calls and the operations of OpenAPI documents, under one policy.

A call goes through `source`, `request`, `exchange` and `dialer`; its answer comes back through `status` or `answer`.

- ``answer``: from the bytes of an answer to a result
- ``body``: the body of a request
- ``dialer``: resolves a name once and connects to an address that was checked
- ``documents``: an OpenAPI document at a URL
- ``exchange``: sends a request, follows redirects at home, bounds the answer
- ``host_shares``: how many calls of one host run or wait at a time, and whose
- ``inflate``: decompresses an answer within bounds
- ``openapi``: operations of OpenAPI documents
- ``operation``: one HTTP call before any argument
- ``parameter_style``: argument values as text
- ``request``: from an operation and its arguments to what is sent
- ``single``: an entry that is one call
- ``source``: an entry of `httpTools` as a source of the pool
- ``status``: a status of 400 and more as an error
- ``url``: URL templates with gaps for arguments
"""

from toolgrove.pool.http.dialer import Network
from toolgrove.pool.http.source import HttpSource

__all__ = ["HttpSource", "Network"]

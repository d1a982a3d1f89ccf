"""Tools of external MCP servers: a lean client for both protocol eras, over stdio, Streamable HTTP and HTTP+SSE.

A call goes down `source`, `server`, `session`, a link (`stdio`, `http` or `old_sse`) and `jsonrpc`.

- ``awaited``: an answer that is still to come
- ``backoff``: how long to wait before a server is tried again
- ``breaker``: stops calls to a server that fails time after time
- ``callers``: whose a word of the server is, where nothing says so
- ``catalog``: the tools that a server lists now, each held against its pin
- ``child``: a server as our child process
- ``connection``: HTTP/1.1 to one server, with a few kept connections
- ``definition``: what is taken over of a server's definition of a tool
- ``effect_policy``: which tools change something, by the operator's word
- ``era``: what each of the two protocol eras adds to a request
- ``faults``: what can go wrong with a server
- ``front``: passes on to the client of a call what the server logs and asks meanwhile
- ``http``: a link over Streamable HTTP
- ``inbound_budget``: how much a server may say without being asked
- ``jsonrpc``: messages: written, read and bounded
- ``line_reader``: cuts a pipe into lines
- ``link``: the protocol that every link follows
- ``oauth``: logins to servers that ask for OAuth
- ``news``: what a server tells by itself of what it offers beside tools
- ``offered_lists``: what a server lists beside its tools, asked for now and then
- ``old_sse``: a link over HTTP+SSE, the transport before Streamable HTTP
- ``request_head``: writes the head of an HTTP request
- ``response_reader``: reads HTTP answers
- ``result``: from a server's answer to what the agent gets
- ``sandbox``: runs a server under bubblewrap
- ``scopes``: which scopes a server wants
- ``server_log``: what a server logs by way of the protocol
- ``server``: keeps one server connected and its tools listed
- ``session``: opens a conversation in the right era, lists tools, calls them
- ``source``: one server as a source of the pool; bounds every call
- ``sse``: cuts a stream into server-sent events
- ``stderr``: a server's error output in our log
- ``stdio``: a link to a child process
- ``subscriptions``: the resources of a server that somebody watches
- ``tool_list_freshness``: whether the list is younger than the last word that it changed
"""

from toolgrove.pool.mcp.source import McpSource

__all__ = ["McpSource"]

"""Serving MCP: a table of tools and a `run` callable in, MCP out, over stdio, Streamable HTTP and SSE, in both eras.

Knows nothing of where tools come from: neither of apcore nor of Toolgrove.

- ``answer``: what a call of a tool answers
- ``calls``: calls in flight, which may be suspended, resumed and drained
- ``clear_json``: refuses bodies that two readers could read differently
- ``connections``: takes as many connections as there is room for
- ``diversion``: leads a standard stream elsewhere for a while
- ``eager``: begins work on the spot, and makes a task only of what has to wait
- ``endpoint``: one MCP server over a table, whichever way its clients come
- ``guard``: refuses foreign hosts and pages of other origins
- ``heads``: heads of requests that were read before
- ``hooks``: what an operator wants done at the start and at the end
- ``http_server``: runs an ASGI app until it is told to stop
- ``http``: the routes of Streamable HTTP and SSE
- ``lane``: answers plain requests at once, and passes all others on
- ``late``: an answer that becomes a stream if it takes long
- ``line``: the answers to plain requests of one endpoint
- ``listing``: `tools/list` as bytes, written once
- ``log_levels``: how much of a tool's log a client hears
- ``own_loop``: serves in a loop of its own, and leaves nothing behind
- ``plain``: which way a request takes
- ``presence``: work that ends when its client goes away
- ``prompts``: the prompts to offer
- ``quick_http``: a connection that answers plain requests on the spot
- ``resources``: what clients can read
- ``sdk_internals``: what we rely on in the MCP SDK without a promise
- ``sessions``: what the lane knows of sessions of the older era
- ``shortcut``: the lane without ASGI
- ``signals``: stops on SIGINT and SIGTERM, within one budget
- ``stderr``: what is written to stderr, through a queue
- ``stdio``: serves stdin and stdout
- ``stdio_lane``: the lane of stdio
- ``switch``: turns the lane off
- ``table``: the tools to serve
- ``under_way``: requests on the lane that can be cancelled
- ``uvicorn_internals``: the same in uvicorn, for one connection
- ``uvicorn_server``: and for all of them
- ``verbatim``: sends what stands in the form of the wire exactly as it is
- ``watches``: who is told when a resource changes
- ``whole``: answers that are sent in one piece
- ``wire``: answers as bytes, as the SDK writes them
"""

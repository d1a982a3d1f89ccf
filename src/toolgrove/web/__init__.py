"""The gateway: every agent of a project over HTTP, and a console for the person who answers for them.

- ``agent_endpoints``: one MCP endpoint per agent, opened as the configuration names them
- ``agents``: what an agent finds at its address
- ``app``: the ASGI app that joins the parts, and its life
- ``arrivals``: records of first uses of tokens, and of sign-ins
- ``console``: the console's page
- ``http_json``: JSON bodies, JSON answers and event streams
- ``identity``: who asks, by bearer token
- ``live``: the event stream that consoles watch
- ``logins``: logins to MCP servers from the console
- ``metrics``: counters for Prometheus
- ``openapi``: the OpenAPI document, written from operations and schemas
- ``operations``: the table of all addresses: what each takes and answers, and whom it serves
- ``operator``: the operator's API
- ``project``: what the gateway needs of a project
- ``refusals``: audit records of requests that were refused at the edge
- ``revocations``: ends what a revoked token opened
- ``room``: how much room the store takes, for Prometheus
- ``routing``: routes from the table of operations
- ``runs``: the runs under way
- ``schemas``: the objects that the API takes and answers
- ``session_room``: how many sessions are kept open, and which makes room for a new one
- ``sessions``: MCP sessions by the token that opened them
- ``slow_down``: makes those wait who keep coming with wrong tokens
- ``streams``: the event streams under way
- ``traffic``: calls per minute of the last day, for the console's figures and charts
- ``upstream_messages``: how much MCP servers log, for Prometheus
"""

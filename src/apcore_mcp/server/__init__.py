"""From a registry to what `mcp_serve` serves: the table of tools, and the way of a call.

- ``factory``: one MCP tool from one module
- ``health``: the route `/health`
- ``listener``: the live table of tools
- ``router``: one call through apcore's pipeline
"""

"""Everything that touches the MCP SDK: tools, calls, transports."""

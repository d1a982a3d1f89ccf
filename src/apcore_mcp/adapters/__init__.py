"""Pure translations from apcore's vocabulary to MCP's."""

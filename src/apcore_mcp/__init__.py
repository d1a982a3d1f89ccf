"""Any apcore registry as an MCP server and as OpenAI tools."""

"""`toolgrove install`: an agent in the configuration of an MCP client."""

from toolgrove.cli.install.command import add

__all__ = ["add"]

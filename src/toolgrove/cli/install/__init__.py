"""`toolgrove install`: an agent in the configuration of an MCP client.

- ``app``: the entry for a Python file or a folder of them
- ``client``: the clients, their files and their words
- ``command``: the command itself
- ``settings``: one entry added to a client's file, everything else as it was
"""

from toolgrove.cli.install.command import add

__all__ = ["add"]

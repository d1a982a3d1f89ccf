"""`python -m e2e.conformance_server PORT whole|bare`: what the official conformance suite expects, behind our bridge.

All that a module can do is a module in a registry and runs through the bridge. `whole` adds the rest to its endpoint.
"""

import asyncio
import sys

from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from e2e.conformance_handlers import complete, register_special_tools
from e2e.conformance_modules import registry
from mcp_serve.signals import Stop

if __name__ == "__main__":
    is_whole = sys.argv[2] == "whole"
    if is_whole:
        register_special_tools()
    bridge = Bridge(registry, Options(name="conformance", transport="streamable-http", port=int(sys.argv[1])))
    if is_whole:
        complete(bridge.endpoint)
    asyncio.run(bridge.run(Stop()))

"""`python -m web.conformance_gateway PORT [whole]`: the conformance suite's tools as a project's, behind the gate.

With `whole`, the agent's endpoint also answers what no tool behind a gate can say, as a server of its own would.
"""

import asyncio
import socket
import sys
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from e2e.conformance_handlers import complete, register_special_tools
from e2e.conformance_modules import registry
from mcp_serve.http_server import run_http
from mcp_serve.signals import Stop, stop_on_signals
from toolgrove import Config, Grove

UPSTREAM = Path(__file__).with_name("conformance_upstream.py")
SERVERS = {"test": {"command": sys.executable, "args": ["-I", "-S", str(UPSTREAM)], "protocol": "legacy"}}
AGENTS = {"suite": {"role": "editor", "tools": ["*"], "resources": ["test:test://*"], "prompts": ["test_*"]}}


def with_token(app: ASGIApp, token: str) -> ASGIApp:
    """The suite sends none of its own, and must be let in as the agent that it asks for."""
    header = (b"authorization", f"Bearer {token}".encode())

    async def known(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "headers": [*scope["headers"], header]}, receive, send)

    return known


async def main(port: int, whole: bool) -> None:
    stop = Stop()
    if whole:
        register_special_tools()
    # Not both: the server's tools are named as the special ones are.
    config = Config.model_validate({"mcpServers": {} if whole else SERVERS, "agents": AGENTS})
    with socket.create_server(("127.0.0.1", port)) as listening:
        async with Grove(config, extensions=registry) as grove:
            gateway = grove.gateway()
            app = with_token(gateway.app, grove.tokens.issue("suite"))
            async with gateway.app.router.lifespan_context(gateway.app):
                if whole:
                    complete(gateway.endpoints["suite"].face.endpoint)
                with stop_on_signals(stop, asyncio.get_running_loop()):
                    await run_http(app, gateway.drain, listening, stop)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), whole="whole" in sys.argv[2:]))

"""`python -m web.conformance_gateway PORT`: the conformance suite's tools as those of a project, behind the gate."""

import asyncio
import socket
import sys
from pathlib import Path

from apcore_mcp.server.transport import run_http, stop_on_signals
from e2e.conformance_modules import registry
from toolgrove import Config, Grove

UPSTREAM = Path(__file__).with_name("conformance_upstream.py")
CONFIG = Config.model_validate(
    {
        "mcpServers": {"test": {"command": sys.executable, "args": ["-I", "-S", str(UPSTREAM)], "protocol": "legacy"}},
        "agents": {"suite": {"role": "editor", "tools": ["*"]}},
    }
)


async def main(port: int) -> None:
    stop = asyncio.Event()
    with socket.create_server(("127.0.0.1", port)) as listening:
        async with Grove(CONFIG, extensions=registry) as grove:
            gateway = grove.gateway(anonymous=True)
            async with gateway.app.router.lifespan_context(gateway.app):
                with stop_on_signals(stop, asyncio.get_running_loop()):
                    await run_http(gateway.app, gateway.drain, listening, stop)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))

"""Taking connections: one that comes in the moment in which the server stops is nobody's fault."""

import asyncio
import socket
from typing import Any

from mcp_serve.connections import Connections


def test_a_connection_that_comes_while_accepting_ends_is_no_fault() -> None:
    faults: list[dict[str, Any]] = []

    async def stop_as_one_comes() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, fault: faults.append(fault))
        with socket.create_server(("127.0.0.1", 0)) as listening:
            accepting = asyncio.ensure_future(Connections(8).accept(listening, asyncio.Protocol))
            await asyncio.sleep(0)
            with socket.create_connection(listening.getsockname()):
                loop.call_soon(accepting.cancel)
                await asyncio.wait([accepting])
                await asyncio.sleep(0)

    asyncio.run(stop_as_one_comes())
    assert faults == []

"""The bridge beside other work in one event loop; cancel its task to stop it."""

import asyncio
import contextlib
import sys

from apcore_mcp import async_serve
from quickstart import registry


async def main(port: int) -> None:
    started = asyncio.Event()
    serving = asyncio.create_task(async_serve(registry, transport="streamable-http", port=port, on_startup=started.set))
    await started.wait()
    print(f"serving on http://127.0.0.1:{port}/mcp; your own work goes here")
    serving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await serving


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8000))

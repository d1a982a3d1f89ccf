"""A client in Python: list the tools, call one, watch its progress. Start `make explorer` first."""

import asyncio
import sys

from mcp import Client


async def main(url: str) -> None:
    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        print(f"  {progress:g} of {total:g}: {message}")

    async with Client(url) as client:
        for tool in (await client.list_tools()).tools:
            print(tool.name, "-", tool.description)
        result = await client.call_tool("jobs.count_primes", {"below": 1000}, progress_callback=on_progress)
        print(result.structured_content)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000/mcp"))

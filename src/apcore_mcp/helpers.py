"""What a module may ask of its MCP client while it runs.

Both helpers are coroutines. An async module awaits them; a sync module, which apcore runs in a thread,
uses `asyncio.run(report_progress(context, …))`. Outside an MCP call they do nothing.
"""

from typing import Any

MCP_PROGRESS_KEY: str = "_mcp_progress"
MCP_ELICIT_KEY: str = "_mcp_elicit"


async def report_progress(
    context: Any, progress: float, total: float | None = None, message: str | None = None
) -> None:
    """Send a progress notification to the client that made the call."""
    send = _capability(context, MCP_PROGRESS_KEY)
    if send is not None:
        await send(progress, total, message)


async def elicit(context: Any, message: str, requested_schema: dict[str, Any] | None = None) -> Any | None:
    """Ask the user; None if there is nobody to ask, or the user declines."""
    ask = _capability(context, MCP_ELICIT_KEY)
    return None if ask is None else await ask(message, requested_schema)


def _capability(context: Any, key: str) -> Any:
    data = getattr(context, "data", None)
    return data.get(key) if isinstance(data, dict) else None

"""What every client is asked to do: list, then make the calls it was given; it prints what its user would have seen."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

URL, TOKEN, CALLS = sys.argv[1:4]
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


async def visit(names: Iterable[str], call: Callable[[str, dict[str, Any]], Awaitable[Any]]) -> None:
    """Print the names, and for each call the answer or the failure, as text."""
    seen = [await _seen(call(tool, arguments)) for tool, arguments in json.loads(CALLS)]
    print(json.dumps({"tools": sorted(names), "seen": seen}))


async def _seen(answer: Awaitable[Any]) -> str:
    try:
        return str(await answer)
    except Exception as error:
        return "raised " + " / ".join(_words(error))


def _words(error: BaseException) -> list[str]:
    """The messages of a failure and of those that it was made from."""
    inner = list(error.exceptions) if isinstance(error, BaseExceptionGroup) else [error.__cause__]
    return [str(error), *(word for one in inner if one is not None for word in _words(one))]


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run to the end of the report, whatever a framework leaves behind."""
    asyncio.run(main)

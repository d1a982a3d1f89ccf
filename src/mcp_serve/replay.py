"""A request that was read already, for whoever reads it next."""

from collections.abc import Sequence

from starlette.types import Message, Receive


def replay(messages: Sequence[Message], receive: Receive) -> Receive:
    """Give what was received, and then what comes."""
    waiting = list(reversed(messages))

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again

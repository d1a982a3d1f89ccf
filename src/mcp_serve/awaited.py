"""An answer that has to wait for something, and the request that wants it."""

from collections.abc import Callable

from mcp_serve.eager import Rest
from mcp_serve.lane import Reply


class Awaited:
    """The rest of an answer, on its way in a task; `came` is called in that task when it is there, or has failed."""

    def __init__(self, data: bytes, reply: Reply, rest: Rest[bytes], came: Callable[["Awaited"], None]) -> None:
        self.data = data
        self.reply = reply
        self.text = b""
        self.error: BaseException | None = None
        self._rest = rest
        self._came = came
        self.task = rest.go_on(self._make())

    async def _make(self) -> None:
        try:
            self.text = await self._rest.work()
        except BaseException as error:
            self.error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._came(self)

    async def outcome(self) -> bytes:
        """The answer, for whoever waits on; to cancel that is to cancel the answer."""
        await self.task
        if self.error is not None:
            raise self.error
        return self.text

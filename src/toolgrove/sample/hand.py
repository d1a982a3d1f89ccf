"""An agent of the sample at work: what it changes carries the version that it looked at."""

from __future__ import annotations

import logging
from typing import Any

from toolgrove.grove import Grove
from toolgrove.types import Result

log = logging.getLogger("toolgrove.sample")


class Hand:
    """Makes the calls of one agent, with the version that they need."""

    def __init__(self, grove: Grove, agent: str, session: str | None = None) -> None:
        self.grove, self._agent, self._session = grove, agent, session

    async def call(self, tool: str, /, **arguments: Any) -> Result:
        """Call a tool; whether it is refused is part of the story."""
        return await (await self.grove.agent(self._agent, session=self._session)).call(tool, arguments)

    async def do(self, tool: str, /, **arguments: Any) -> Result:
        """Change something that has to work; the log says so where it does not."""
        answer = await self.change(tool, **arguments)
        if "error" in answer:
            log.warning("the sample's %s could not call %s: %s", self._agent, tool, answer["error"]["message"])
        return answer

    async def change(self, tool: str, /, **arguments: Any) -> Result:
        """Change something at the version that the tree has now."""
        root = await self.call("get_node", nodeId="root")
        return await self.call(tool, **arguments, versionToken=root.get("version"))

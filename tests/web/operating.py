"""A project and its operator in one process: an HTTP client with the operator's token, or an agent's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx2

from e2e.wire import call_body, messages, modern_headers
from grove_kit import ManualClock
from toolgrove import Config, Grove
from toolgrove.store.state import OPERATOR
from waiting import DEADLINE


class Desk:
    """Where the operator sits."""

    def __init__(self, grove: Grove, http: Mapping[str, httpx2.AsyncClient]) -> None:
        self.grove, self.http = grove, http
        self.operator = http[OPERATOR]

    async def get(self, path: str, **query: str) -> Any:
        """What an address answers."""
        answer = await self.operator.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def version(self, agent: str) -> str:
        return str((await (await self.grove.agent(agent)).call("get_node", {"nodeId": "root"}))["version"])

    async def change(self, agent: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """A call at the version that the tree has now."""
        token = await self.version(agent)
        return dict(await (await self.grove.agent(agent)).call(tool, {**arguments, "versionToken": token}))

    async def mcp(self, agent: str, tool: str, *, by: str = "", progress: bool = False, **arguments: Any) -> list[Any]:
        """All messages that answer a call over MCP."""
        meta = {"_meta": {"progressToken": 1}} if progress else {}
        response = await self.http[by or agent].post(
            f"/agents/{agent}/mcp", json=call_body(tool, arguments, **meta), headers=modern_headers("tools/call", tool)
        )
        return messages(response)

    async def waiting(self) -> dict[str, Any]:
        """The one approval that waits."""
        (found,) = (await self.get("/api/approvals", state="pending"))["items"]
        return dict(found)


@asynccontextmanager
async def operating(config: dict[str, Any], *, clock: ManualClock | None = None) -> AsyncIterator[Desk]:
    """A project that serves in this process."""
    with anyio.fail_after(DEADLINE):
        async with Grove(Config.model_validate(config), clock=clock) as grove, AsyncExitStack() as stack:
            app = grove.asgi_app()
            await stack.enter_async_context(app.router.lifespan_context(app))
            names = (OPERATOR, *grove.config.agents)
            tokens = {name: grove.tokens.issue(name, by="the test") for name in names}
            known = {
                name: httpx2.AsyncClient(
                    transport=httpx2.ASGITransport(app),
                    base_url="http://127.0.0.1",
                    headers={"Authorization": f"Bearer {token}"},
                    timeout=DEADLINE,
                )
                for name, token in tokens.items()
            }
            yield Desk(grove, known)
            for client in known.values():
                await client.aclose()

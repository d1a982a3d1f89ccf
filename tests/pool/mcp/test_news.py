"""What servers tell by themselves reaches the clients of agents: changed lists, and resources that are watched."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.subscriptions import ListenNotSupportedError, PromptsListChanged, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from pool.mcp.mcp_kit import Journal, web
from pool.mcp.test_resources import project
from toolgrove import Grove
from toolgrove.mcp_face import McpFace
from waiting import DEADLINE, eventually
from warm.command import python

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
NEWSROOM = Path(__file__).with_name("newsroom.py")
ALL: Json = {"tools": ["up_*"], "resources": ["up:memo://*"], "prompts": ["up_*"], "role": "editor"}
WAYS = pytest.mark.parametrize(
    ("transport", "protocol", "era"),
    [
        ("stdio", "modern", "auto"),
        ("stdio", "legacy", "legacy"),
        ("http", "modern", "legacy"),
        ("http", "legacy", "auto"),
    ],
)


@contextmanager
def newsroom(transport: str, protocol: str, journal: Path) -> Iterator[Json]:
    if transport == "http":
        with web(journal, program=NEWSROOM) as port:
            yield {"up": {"url": f"http://127.0.0.1:{port}/mcp", "protocol": protocol}}
    else:
        command, *arguments = python(str(NEWSROOM), str(journal))
        yield {"up": {"command": command, "args": arguments, "protocol": protocol}}


class Ear:
    """A client of an agent that counts what it is told."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.face: McpFace | None = None
        self.heard: Counter[str] = Counter()
        self._listening: list[asyncio.Task[None]] = []

    async def told(self, message: Any) -> None:
        if self._modern:
            return  # its streams tell the same
        if isinstance(message, types.ResourceUpdatedNotification):
            self.heard[message.params.uri] += 1
        elif isinstance(message, types.ResourceListChangedNotification):
            self.heard["resources"] += 1
        elif isinstance(message, types.PromptListChangedNotification):
            self.heard["prompts"] += 1

    async def watch(self, *uris: str) -> frozenset[str]:
        """Watch in the way of the era; which of them the server agreed to."""
        if not self._modern:
            for uri in uris:
                await self.client.session.send_request(
                    types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri)), types.EmptyResult
                )
            return frozenset(uris)
        honored: asyncio.Future[frozenset[str]] = asyncio.get_running_loop().create_future()
        self._listening.append(asyncio.ensure_future(self._listen(uris, honored)))
        return await honored

    async def _listen(self, uris: Sequence[str], honored: asyncio.Future[frozenset[str]]) -> None:
        lists = {"resources_list_changed": True, "prompts_list_changed": True}
        async with self.client.listen(resource_subscriptions=list(uris), **lists) as subscription:
            honored.set_result(frozenset(subscription.honored.resource_subscriptions or ()))
            async for event in subscription:
                if isinstance(event, ResourceUpdated):
                    self.heard[event.uri] += 1
                else:
                    kinds: Any = {ResourcesListChanged: "resources", PromptsListChanged: "prompts"}
                    self.heard[kinds[type(event)]] += 1

    async def unwatch(self, uri: str) -> None:
        if self._modern:
            await self.close()
        else:
            await self.client.session.send_request(
                types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri)), types.EmptyResult
            )

    @property
    def _modern(self) -> bool:
        return self.client.protocol_version == "2026-07-28"

    async def close(self) -> None:
        listening, self._listening = self._listening, []
        for one in listening:
            one.cancel()
        await asyncio.gather(*listening, return_exceptions=True)


@asynccontextmanager
async def listener(grove: Grove, agent: str, era: str) -> AsyncIterator[Ear]:
    face = McpFace(await grove.agent(agent), "1")
    ears: list[Ear] = []

    async def handler(message: Any) -> None:
        if ears:
            await ears[0].told(message)

    async with Client(face.endpoint.server, mode=era, cache=None, message_handler=handler) as client:
        ear = Ear(client)
        ear.face = face
        ears.append(ear)
        try:
            yield ear
        finally:
            await ear.close()
            face.close()


async def do(grove: Grove, tool: str, **arguments: Any) -> None:
    agent = await grove.agent("all")
    result = await agent.call(f"up_{tool}", arguments)
    assert "error" not in result, result


@WAYS
async def test_changes_reach_those_who_may_read_and_one_subscription_serves_them_all(
    transport: str, protocol: str, era: str, tmp_path: Path
) -> None:
    journal = Journal(tmp_path / "journal")
    with newsroom(transport, protocol, journal.path) as servers:
        others = {"two": {"resources": ["up:memo://two"]}}
        async with project(servers, all=ALL, **others) as grove, listener(grove, "all", era) as a:
            capabilities = a.client.server_capabilities
            assert capabilities.resources is not None
            assert capabilities.resources.subscribe
            assert capabilities.prompts is not None
            assert capabilities.prompts.list_changed
            assert len((await a.client.list_resources()).resources) == 1
            async with listener(grove, "all", era) as b, listener(grove, "two", era) as other:
                assert await a.watch("memo://one") == {"memo://one"}
                assert await b.watch("memo://one") == {"memo://one"}
                if era == "legacy":
                    with pytest.raises(MCPError, match="Resource not found"):
                        await other.watch("memo://one")
                else:
                    assert await other.watch("memo://one") == frozenset()
                await do(grove, "touch", uri="memo://one")
                await eventually(lambda: a.heard["memo://one"] and b.heard["memo://one"])
                assert journal.of("watch") == [["memo://one"]]
                assert other.heard["memo://one"] == 0
                await do(grove, "grow")
                await eventually(lambda: a.heard["resources"] and a.heard["prompts"] and other.heard["resources"])
                assert [one.uri for one in (await a.client.list_resources()).resources] == ["memo://one", "memo://two"]
                assert [one.name for one in (await a.client.list_prompts()).prompts] == ["up_one", "up_two"]
                assert other.heard["prompts"] == 0
                await b.unwatch("memo://one")
                told = b.heard["memo://one"]
                before = a.heard["memo://one"]
                await do(grove, "touch", uri="memo://one")
                await eventually(lambda: a.heard["memo://one"] > before)
                assert b.heard["memo://one"] == told
                assert journal.of("unwatch") == []
            await a.unwatch("memo://one")
            await eventually(lambda: journal.of("unwatch") == [["memo://one"]])


@pytest.mark.parametrize("protocol", ["modern", "legacy"])
async def test_a_watch_is_taken_up_again_and_ends_with_its_session_or_its_grant(protocol: str, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    with newsroom("stdio", protocol, journal.path) as servers:
        async with project(servers, all=ALL) as grove:
            async with listener(grove, "all", "legacy") as a, listener(grove, "all", "auto") as b:
                await a.watch("memo://one")
                await b.watch("memo://two")
                assert "error" in await (await grove.agent("all")).call("up_crash")
                # Whatever happened meanwhile may have changed it, so both are told when it is back.
                await eventually(lambda: a.heard["memo://one"] and b.heard["memo://two"])
                await eventually(lambda: sorted(journal.of("watch")).count(["memo://one"]) >= 2)
                before = a.heard["memo://one"]
                await do(grove, "touch", uri="memo://one")
                await eventually(lambda: a.heard["memo://one"] > before)
                taken = {**ALL, "resources": ["up:memo://two"]}
                config = grove.config.model_validate({**_raw(servers), "agents": {"all": taken}})
                await grove.reload(config)
                told = len(journal.of("unwatch"))
                assert a.face is not None
                a.face.use(await grove.agent("all"))
                await eventually(lambda: ["memo://one"] in journal.of("unwatch")[told:])
            await eventually(lambda: journal.of("unwatch")[-1] == ["memo://two"])
            records = [one for one in grove.audit if one["operation"] == "resources/subscribe"]
            assert [one["targets"] for one in records] == [["up:memo://one"], ["up:memo://two"]]


def _raw(servers: Json) -> Json:
    return {"mcpServers": servers, "startupBudget": DEADLINE}


async def test_a_client_hears_why_a_resource_cannot_be_watched_and_can_watch_so_many(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    with newsroom("stdio", "legacy", journal.path) as servers:
        async with project(servers, all=ALL) as grove, listener(grove, "all", "legacy") as ear:
            for number in range(100):
                await ear.watch(f"memo://{number}")
            with pytest.raises(MCPError, match="can watch 100 resources at a time"):
                await ear.watch("memo://more")
            with pytest.raises(ListenNotSupportedError):
                async with ear.client.listen(resources_list_changed=True):
                    pass
            assert len(journal.of("watch")) == 100
        await eventually(lambda: len(journal.of("unwatch")) == 100)

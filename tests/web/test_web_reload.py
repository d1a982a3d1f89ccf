"""The project file changes while the gateway runs: good changes reach every client, bad ones change nothing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from e2e.wire import ERAS
from faults.kit import fake
from mcp_text import told
from waiting import DEADLINE, eventually
from web.gateway import AGENTS, PROJECT, Gateway, call, serving, toolgrove

pytestmark = pytest.mark.anyio
LOOK = {"nodeId": "root"}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with serving(tmp_path / "project") as served:
        yield served


class Watcher:
    """A client that counts how often it was told that its tools changed."""

    client: Client

    def __init__(self) -> None:
        self.told = 0

    async def hear(self, message: Any) -> None:
        self.told += isinstance(message, types.ToolListChangedNotification)

    async def tools(self) -> dict[str, str]:
        return {tool.name: tool.description or "" for tool in (await self.client.list_tools()).tools}

    async def until(self, condition: Callable[[dict[str, str]], bool]) -> None:
        """Look again whenever it is told, and only then, until the tools are as they should be."""
        with anyio.fail_after(DEADLINE):
            while not condition(await self.tools()):
                await eventually(lambda: self.told)
                self.told = 0


@asynccontextmanager
async def watching(gateway: Gateway, agent: str, era: str) -> AsyncIterator[Watcher]:
    watcher = Watcher()
    async with gateway.connect(agent, era, message_handler=watcher.hear) as watcher.client:
        if era == "legacy":
            yield watcher
            return
        async with watcher.client.listen(tools_list_changed=True) as changes, anyio.create_task_group() as group:

            async def count() -> None:
                async for _ in changes:
                    watcher.told += 1

            group.start_soon(count)
            yield watcher
            group.cancel_scope.cancel()


def with_agents(**agents: Any) -> dict[str, Any]:
    return {**PROJECT, "agents": {**AGENTS, **agents}}


async def status(gateway: Gateway, agent: str, token: str) -> int:
    async with gateway.http() as http:
        answer = await http.get(f"/agents/{agent}/receipt", headers={"Authorization": f"Bearer {token}"})
        return answer.status_code


async def until(gateway: Gateway, agent: str, token: str, wanted: int) -> None:
    async def seen() -> bool:
        return await status(gateway, agent, token) == wanted

    await eventually(seen)


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_is_told_when_the_file_gives_its_agent_other_tools(gateway: Gateway, era: str) -> None:
    async with watching(gateway, "researcher", era) as watcher, watching(gateway, "editor", era) as other:
        unchanged = await other.tools()
        assert "list_children" not in await watcher.tools()
        gateway.write(with_agents(researcher={"tools": ["get_node", "list_children"]}))
        await watcher.until(lambda tools: tools.keys() == {"get_node", "list_children"})
        assert not (await watcher.client.call_tool("list_children", LOOK)).is_error
        assert (await watcher.client.call_tool("select_nodes", {"queryDsl": "x = y"})).is_error
        assert await other.tools() == unchanged
        assert other.told == 0, "whose tools stayed the same hears nothing"


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_is_told_when_a_server_comes_and_goes(gateway: Gateway, era: str) -> None:
    async with watching(gateway, "editor", era) as watcher:
        assert "up_echo" not in await watcher.tools()
        gateway.write({**PROJECT, "mcpServers": {"up": fake("few")}})
        await watcher.until(lambda tools: "up_echo" in tools)
        assert not (await watcher.client.call_tool("up_echo", {"text": "x"})).is_error
        gateway.write(PROJECT)
        await watcher.until(lambda tools: "up_echo" not in tools)
        gone = told(await watcher.client.call_tool("up_echo", {"text": "x"}))
        assert gone["error"]["code"] == "not_found"


async def test_an_agent_comes_and_its_token_goes_with_it(gateway: Gateway) -> None:
    gateway.write(with_agents(third={"tools": ["get_node"]}))
    await eventually(lambda: "Without a token: third." in gateway.log)
    command = toolgrove("tokens", "new", "third", "--config", str(gateway.file), "--json")
    made = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=True)
    token = json.loads(made.stdout)["token"]
    assert token not in gateway.log
    await until(gateway, "third", token, 200)
    gateway.tokens["third"] = token
    gateway.agents["third"] = f"{gateway.base}/agents/third/mcp"
    async with gateway.connect("third") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["get_node"]
    async with gateway.http("researcher") as http:
        assert (await http.get("/agents/third/receipt")).status_code == 404
    gateway.write(PROJECT)
    await until(gateway, "third", token, 401)
    async with gateway.http("operator") as http:
        assert (await http.get("/agents/third/receipt")).status_code == 404
        assert "third" not in (await http.get("/api/project")).text
    assert await status(gateway, "editor", gateway.tokens["editor"]) == 200


BAD = {
    "not YAML": "agents: {",
    "unknown key": "agnets: {}",
    "not a mapping": "- a\n- b",
    "empty role": "agents: {editor: {role: king}}",
    "bad limit": "agents: {editor: {rateLimit: often}}",
    "control characters": "agents: {editor: {tools: ['\x01']}}",
    "NUL": "agents: \x00",
}


async def test_a_bad_change_keeps_the_last_good_configuration_and_says_why(gateway: Gateway) -> None:
    async with gateway.http("editor") as http:
        for bad in BAD.values():
            said = gateway.log.count("stays in use")
            gateway.write(bad)
            await eventually(lambda said=said: gateway.log.count("stays in use") == said + 1)  # type: ignore[misc]
            assert (await call(http, "editor", "get_node", LOOK))["nodeId"] == "root"
        said = gateway.log.count("stays in use")
        gateway.file.unlink()
        await eventually(lambda: gateway.log.count("stays in use") == said + 1)
        gateway.file.mkdir()
        await eventually(lambda: gateway.log.count("stays in use") == said + 2)
        assert (await call(http, "editor", "get_node", LOOK))["nodeId"] == "root"
        gateway.file.rmdir()
        gateway.write({**PROJECT, "mcpServers": {"up": fake("few")}})
        with anyio.fail_after(DEADLINE):
            while "content" not in await call(http, "editor", "up_echo", {"text": "back"}):
                await anyio.sleep(0.05)
    assert len([line for line in gateway.log.splitlines() if "stays in use" in line]) == len(BAD) + 2
    async with gateway.http("operator") as http:
        records = (await http.get("/api/audit", params={"kind": "configuration"})).json()["items"]
    taken = [record["details"]["at"] for record in records if record["operation"] == "configuration.taken"]
    assert (taken, len(records)) == (["start", "change"], len(BAD) + 2 + 2)


REFUSED: dict[str, dict[str, Any]] = {
    "extensions that are not there": {"extensions": "nowhere"},
    "extensions that are a file": {"extensions": "toolgrove.yaml"},
}
TAKEN: dict[str, dict[str, Any]] = {
    "an OpenAPI document that is not there": {"httpTools": {"api": {"openapi": "nowhere.json"}}},
    "a server that cannot be started": {"mcpServers": {"up": {"command": "no-such-program-anywhere"}}},
    "a server without its secret": {
        "mcpServers": {"up": {"url": "http://127.0.0.1:9/", "headers": {"A": "${env:NO}"}}}
    },
    "another workspace": {"workspace": {"payloadTypes": {"Other": {}}}},
}


async def test_a_change_that_can_be_read_but_does_not_work_never_ends_the_gateway(gateway: Gateway) -> None:
    """What cannot be put to use at all is refused whole; a source that does not come up is that source's affair."""
    async with gateway.http("editor") as http, gateway.http("operator") as operator:
        for number, (what, sections) in enumerate([*REFUSED.items(), *TAKEN.items()]):
            good, bad = f"Without a token: marker{number}.", gateway.log.count("stays in use")
            gateway.write({**PROJECT, **sections, "agents": {**AGENTS, f"marker{number}": {}}})

            def settled(good: str = good, bad: int = bad) -> bool:
                ended = gateway.process.poll() is not None
                return ended or good in gateway.log or gateway.log.count("stays in use") > bad

            await eventually(settled)
            assert gateway.process.poll() is None, (what, gateway.log)
            assert (good in gateway.log) is (what in TAKEN), what
            assert (await call(http, "editor", "get_node", LOOK))["nodeId"] == "root", what
            known = [agent["name"] for agent in (await operator.get("/api/project")).json()["agents"]]
            assert (f"marker{number}" in known) is (what in TAKEN), what


MODULE = """
from pydantic import BaseModel


class Words(BaseModel):
    text: str


class Echo:
    description = "{description}"
    input_schema = Words
    output_schema = Words

    def execute(self, inputs, context):
        return {{"text": inputs["text"]}}
"""


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_is_told_when_a_module_of_the_project_comes_or_changes(tmp_path: Path, era: str) -> None:
    folder = tmp_path / "project"
    (folder / "extensions" / "say").mkdir(parents=True)
    file = folder / "extensions" / "say" / "echo.py"
    with serving(folder, {**PROJECT, "extensions": "extensions"}) as gateway:
        async with watching(gateway, "editor", era) as watcher:
            assert "say-echo" not in await watcher.tools()
            file.write_text(MODULE.format(description="Says it again."))
            await watcher.until(lambda tools: tools.get("say-echo") == "Says it again.")
            said = await watcher.client.call_tool("say-echo", {"text": "hello"})
            assert said.structured_content == {"text": "hello"}
            file.write_text(MODULE.format(description="Says it once more."))
            await watcher.until(lambda tools: tools.get("say-echo") == "Says it once more.")

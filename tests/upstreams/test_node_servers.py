"""`server-everything` and `server-filesystem` from npm; they speak the handshake era only."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference

from e2e.node_tools import require
from toolgrove import Grove
from toolgrove.mcp_face import mcp_endpoint
from upstreams.servers import (
    EVERYTHING,
    FILESYSTEM,
    Listener,
    everything,
    everything_over_http,
    filesystem,
    offered,
    project,
    text_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.node]


@pytest.fixture(autouse=True)
def _installed() -> None:
    require(EVERYTHING, FILESYSTEM)


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def with_everything(transport: str, **agents: Any) -> AsyncIterator[Grove]:
    if transport == "stdio":
        async with project({"all": everything()}, **agents) as grove:
            yield grove
    else:
        with everything_over_http() as url:
            async with project({"all": {"url": url, "reads": ["*"]}}, **agents) as grove:
                yield grove


async def test_everything_is_listed_and_called(transport: str) -> None:
    async with with_everything(transport) as grove:
        agent = await grove.agent("reader")
        assert {"echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"} <= offered(agent, "all")
        assert text_of(await agent.call("all_echo", {"message": "hello"})) == "Echo: hello"
        assert "5" in text_of(await agent.call("all_get-sum", {"a": 2, "b": 3}))
        assert (await agent.call("all_get-sum", {"a": 2}))["error"]["code"] == "invalid_argument"


async def test_structured_content_is_the_result(transport: str) -> None:
    async with with_everything(transport) as grove:
        agent = await grove.agent("reader")
        weather = await agent.call("all_get-structured-content", {"location": "Chicago"})
        assert {"temperature", "conditions", "humidity"} <= weather["structuredContent"].keys()


async def test_an_image_is_relayed_block_for_block(transport: str) -> None:
    from mcp import Client

    async with with_everything(transport) as grove:
        agent = await grove.agent("reader")
        result = await agent.call("all_get-tiny-image")
        image = next(block for block in result["content"] if block["type"] == "image")
        assert base64.b64decode(image["data"]).startswith(b"\x89PNG")
        async with Client(mcp_endpoint(agent, "1").server) as client:
            relayed = await client.call_tool("all_get-tiny-image", {})
            shown = [block.model_dump(by_alias=True, exclude_none=True) for block in relayed.content]
            assert shown == result["content"]


async def test_links_and_annotated_blocks_are_relayed(transport: str) -> None:
    async with with_everything(transport) as grove:
        agent = await grove.agent("reader")
        links = await agent.call("all_get-resource-links", {"count": 2})
        assert [block["type"] for block in links["content"]].count("resource_link") == 2
        noted = await agent.call("all_get-annotated-message", {"messageType": "error", "includeImage": False})
        assert noted["content"][0]["annotations"]["audience"]


@pytest.mark.parametrize("era", ["auto", "legacy"], ids=["2026", "handshake"])
async def test_what_a_tool_links_to_can_be_read(transport: str, era: str) -> None:
    from mcp import Client

    agents = {"linked": {"resources": ["all:demo://*"]}, "bare": {"tools": ["all_echo"]}}
    async with with_everything(transport, **agents) as grove:
        agent = await grove.agent("linked")
        async with Client(mcp_endpoint(agent, "1").server, mode=era) as client:
            links: Any = (await client.call_tool("all_get-resource-links", {"count": 2})).content
            read = [
                (await client.read_resource(link.uri)).contents[0] for link in links if link.type == "resource_link"
            ]
            assert {type(content).__name__ for content in read} == {"TextResourceContents", "BlobResourceContents"}
            assert (await client.list_resources()).resources
            templates = (await client.list_resource_templates()).resource_templates
            assert "demo://resource/dynamic/text/{resourceId}" in {one.uri_template for one in templates}
            with pytest.raises(MCPError, match="Resource not found"):
                await client.read_resource("demo://resource/none")
        assert not (await grove.agent("bare")).resources.offered


@pytest.mark.parametrize("era", ["auto", "legacy"], ids=["2026", "handshake"])
async def test_prompts_are_listed_and_filled_in(transport: str, era: str) -> None:
    from mcp import Client

    async with with_everything(transport, prompted={"prompts": ["all_*"]}) as grove:
        async with Client(mcp_endpoint(await grove.agent("prompted"), "1").server, mode=era) as client:
            assert {"all_simple-prompt", "all_args-prompt"} <= {
                one.name for one in (await client.list_prompts()).prompts
            }
            given: Any = (await client.get_prompt("all_args-prompt", {"city": "Oslo"})).messages[0].content
            assert "Oslo" in given.text
            with pytest.raises(MCPError, match="refused the call"):
                await client.get_prompt("all_args-prompt", {})
            choice = PromptReference(type="ref/prompt", name="all_completable-prompt")
            found = (await client.complete(choice, {"name": "department", "value": "E"})).completion.values
            assert found == ["Engineering"]
        assert not (await grove.agent("reader")).prompts.offered


async def test_progress_of_a_long_call_arrives_in_order(transport: str) -> None:
    async with with_everything(transport) as grove:
        agent = await grove.agent("reader")
        listener = Listener()
        work = {"duration": 0.5, "steps": 5}
        result = await agent.call("all_trigger-long-running-operation", work, client=listener)
        assert "completed" in text_of(result)
        assert listener.heard == [(step, 5) for step in range(1, 6)]


async def test_progress_of_a_long_call_is_part_of_a_run() -> None:
    async with with_everything("stdio") as grove:
        agent = await grove.agent("reader")
        request = {"tool": "all_trigger-long-running-operation", "arguments": {"duration": 0.3, "steps": 3}}
        events = [event async for event in agent.run([request])]
        assert [event["type"] for event in events] == [
            "tool_started",
            *["tool_progress"] * 3,
            "tool_succeeded",
            "run_finished",
        ]


async def test_a_long_call_that_is_cancelled_leaves_the_server_usable(transport: str) -> None:
    async with with_everything(transport) as grove:
        agent = await grove.agent("reader")
        started = anyio.Event()

        class Watch(Listener):
            async def progress(self, progress: float, total: float | None, message: str | None) -> None:
                started.set()

        async with anyio.create_task_group() as tasks:
            work = {"duration": 600, "steps": 6000}
            tasks.start_soon(lambda: agent.call("all_trigger-long-running-operation", work, client=Watch()))
            await started.wait()
            tasks.cancel_scope.cancel()
        assert text_of(await agent.call("all_echo", {"message": "still here"})) == "Echo: still here"


async def test_the_server_sees_only_the_environment_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEBODYS_TOKEN", "canary")
    async with project({"all": everything() | {"env": {"GIVEN": "yes"}}}) as grove:
        seen = text_of(await (await grove.agent("reader")).call("all_get-env"))
        assert '"GIVEN"' in seen
        assert "canary" not in seen


async def test_the_filesystem_server_reads_for_readers_and_writes_for_editors(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "note.txt").write_text("hello")
    async with project({"files": filesystem(folder)}) as grove:
        reader, editor = await grove.agent("reader"), await grove.agent("editor")
        assert "hello" in str(await reader.call("files_read_text_file", {"path": str(folder / "note.txt")}))
        written = {"path": str(folder / "new.txt"), "content": "written"}
        assert {"write_file", "edit_file", "move_file"}.isdisjoint(offered(reader, "files"))
        assert (await reader.call("files_write_file", written))["error"]["code"] == "forbidden"
        assert not (folder / "new.txt").exists()
        assert "error" not in await editor.call("files_write_file", written)
        assert (folder / "new.txt").read_text() == "written"


async def test_an_error_of_the_filesystem_server_is_an_answer(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    async with project({"files": filesystem(folder)}) as grove:
        reader = await grove.agent("reader")
        failed = await reader.call("files_read_text_file", {"path": "/etc/passwd"})
        assert failed["isError"] is True
        assert "denied" in text_of(failed).lower()


async def test_masks_and_denials_hold_for_a_real_server(tmp_path: Path) -> None:
    careful = {"role": "editor", "mcp": {"files": {"mask": ["write_*", "edit_*"]}}, "deny": ["files_move_file"]}
    async with project({"files": filesystem(tmp_path)}, careful=careful) as grove:
        agent = await grove.agent("careful")
        verdicts = {name: agent.receipt[f"files_{name}"].verdict for name in ("write_file", "move_file", "read_file")}
        assert verdicts == {"write_file": "masked", "move_file": "denied", "read_file": "granted"}
        for name in ("write_file", "move_file"):
            assert (await agent.call(f"files_{name}", {}))["error"]["code"] == "not_found"

"""`mcp-server-time` and `mcp-server-git` from PyPI, in both protocol eras."""

from __future__ import annotations

import subprocess
from pathlib import Path

import anyio
import pytest

from toolgrove.mcp_face import mcp_endpoint
from upstreams.servers import git_server, offered, project, time_server

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["modern", "legacy", "auto"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*arguments: str) -> None:
        me = ["-c", "user.name=tester", "-c", "user.email=tester@localhost", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *me, *arguments], cwd=folder, check=True, capture_output=True)

    git("init")
    (folder / "readme.txt").write_text("hello\n")
    git("add", ".")
    git("commit", "-m", "Say hello")
    return folder


@pytest.mark.requirement("POOL-002-01", "CALL-003-01")
async def test_the_time_server_is_listed_called_and_checked(protocol: str) -> None:
    async with project({"time": time_server(protocol)}) as grove:
        agent = await grove.agent("reader")
        assert offered(agent, "time") == {"get_current_time", "convert_time"}
        assert len(agent.tools) > 2, "the tools of the tree are there as well"
        now = await agent.call("time_get_current_time", {"timezone": "UTC"})
        assert now["structuredContent"]["timezone"] == "UTC"
        assert now["structuredContent"]["is_dst"] is False
        question = {"source_timezone": "Asia/Tokyo", "time": "16:30", "target_timezone": "UTC"}
        converted = await agent.call("time_convert_time", question)
        assert converted["structuredContent"]["time_difference"] == "-9.0h"


async def test_an_error_of_the_time_server_is_an_answer(protocol: str) -> None:
    async with project({"time": time_server(protocol)}) as grove:
        agent = await grove.agent("reader")
        failed = await agent.call("time_get_current_time", {"timezone": "Mars/Olympus"})
        assert failed["isError"] is True
        assert "Mars/Olympus" in failed["content"][0]["text"]
        missing = (await agent.call("time_get_current_time", {}))["error"]
        assert missing["code"] == "invalid_argument"


@pytest.mark.requirement("CALL-003-04")
async def test_a_masked_tool_of_a_real_server_is_not_there() -> None:
    masked = {"mcp": {"time": {"mask": ["convert_*"]}}}
    async with project({"time": time_server()}, masked=masked, none={"mcp": {}}) as grove:
        agent = await grove.agent("masked")
        assert offered(agent, "time") == {"get_current_time"}
        assert agent.receipt["time_convert_time"].verdict == "masked"
        assert (await agent.call("time_convert_time", {}))["error"]["code"] == "not_found"
        assert offered(await grove.agent("none"), "time") == set()


async def test_the_git_server_reads_a_repository(repository: Path, protocol: str) -> None:
    async with project({"git": git_server(repository, protocol)}) as grove:
        reader = await grove.agent("reader")
        where = {"repo_path": str(repository)}
        assert "Say hello" in str(await reader.call("git_git_log", where))
        assert "nothing to commit" in str(await reader.call("git_git_status", where))


async def test_a_destructive_tool_of_the_git_server_is_not_for_readers(repository: Path) -> None:
    async with project({"git": git_server(repository)}) as grove:
        reader = await grove.agent("reader")
        assert "git_reset" not in offered(reader, "git")
        assert reader.receipt["git_git_reset"].verdict == "restricted"
        where = {"repo_path": str(repository)}
        assert (await reader.call("git_git_reset", where))["error"]["code"] == "forbidden"
        editor = await grove.agent("editor")
        (repository / "readme.txt").write_text("changed\n")
        await editor.call("git_git_add", {**where, "files": ["readme.txt"]})
        assert "readme.txt" in str(await editor.call("git_git_diff_staged", where))
        assert "error" not in await editor.call("git_git_reset", where)


async def test_an_error_of_the_git_server_is_an_answer(repository: Path, tmp_path: Path) -> None:
    async with project({"git": git_server(repository)}) as grove:
        reader = await grove.agent("reader")
        answer = await reader.call("git_git_log", {"repo_path": str(tmp_path)})
        assert answer.get("isError") is True or answer["error"]["reason"] == "upstream_rejected"


async def test_two_servers_and_twenty_calls_at_once(repository: Path) -> None:
    async with project({"time": time_server(), "git": git_server(repository)}) as grove:
        agent = await grove.agent("reader")
        seen: list[str] = []

        async def ask(zone: str) -> None:
            seen.append(
                (await agent.call("time_get_current_time", {"timezone": zone}))["structuredContent"]["timezone"]
            )

        zones = ["UTC", "Asia/Tokyo", "Europe/Paris", "America/New_York"] * 5
        async with anyio.create_task_group() as tasks:
            for zone in zones:
                tasks.start_soon(ask, zone)
            tasks.start_soon(agent.call, "git_git_log", {"repo_path": str(repository)})
        assert sorted(seen) == sorted(zones)


async def test_the_whole_way_from_an_mcp_client_to_the_real_server() -> None:
    from mcp import Client

    async with project({"time": time_server()}) as grove:
        endpoint = mcp_endpoint(await grove.agent("reader"), "1")
        async with Client(endpoint.server) as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            assert {"time_get_current_time", "get_node"} < listed
            answer = await client.call_tool("time_get_current_time", {"timezone": "UTC"})
            assert not answer.is_error
            assert answer.structured_content is not None
            assert answer.structured_content["timezone"] == "UTC"
            wrong = await client.call_tool("time_get_current_time", {"timezone": "Mars/Olympus"})
            assert wrong.is_error

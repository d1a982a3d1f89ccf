"""What a server starts does not outlive the gateway: not a clean stop, not SIGKILL, not in a session of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from faults.kit import UPSTREAM, Journal, alive, answers, fake, granted, project, running
from toolgrove import Config, Grove
from toolgrove.pool.mcp.sandbox import obstacle
from toolgrove.pool.offspring import MARK, environment_of
from waiting import DEADLINE, eventually
from web.gateway import PROJECT, call, started

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows environments")]


def living(journal: Journal) -> list[int]:
    return [pid for pid in journal.pids if alive(pid)]


async def test_a_grandchild_in_a_session_of_its_own_ends_with_its_server(journal: Journal) -> None:
    async with running({"up": fake(journal=journal), "well": fake()}) as grove:
        agent = await granted(grove, "up_echo")
        await agent.call("up_runaway")
        assert len(living(journal)) == 2
        await grove.reload(project({"well": fake()}))
        await eventually(lambda: not living(journal))
        await answers(await grove.agent("a"))


async def test_a_grandchild_in_a_session_of_its_own_ends_with_the_grove(journal: Journal) -> None:
    async with running({"up": fake(journal=journal)}) as grove:
        agent = await granted(grove, "up_echo")
        await agent.call("up_runaway")
        _, runaway = journal.pids
        await agent.call("up_crash")
        await eventually(lambda: len(journal.pids) == 3)
        assert not alive(runaway), "it belonged to the server that crashed"
        await (await granted(grove, "up_echo")).call("up_runaway")
        assert len(living(journal)) == 2
    assert not living(journal)


def config(journal: Journal) -> dict[str, Any]:
    return {**PROJECT, "mcpServers": {"up": fake("ignore_eof", journal)}}


async def test_a_server_does_not_outlive_a_gateway_that_is_killed_and_the_next_start_ends_the_rest(
    tmp_path: Path, journal: Journal
) -> None:
    """The kernel ends the server; what that started in a session of its own, the next instance ends."""
    folder = tmp_path / "project"
    with anyio.fail_after(3 * DEADLINE):
        with started(folder, config(journal)) as gateway:
            async with gateway.http("editor") as http:
                await call(http, "editor", "up_runaway")
                server, runaway = journal.pids
                assert living(journal) == [server, runaway]
                os.kill(gateway.process.real_pid, signal.SIGKILL)
        await eventually(lambda: not alive(server))
        assert alive(runaway)
        other = Config.model_validate({"state": str(tmp_path / "other"), "agents": {}})
        async with Grove(other):
            assert alive(runaway), "another project leaves it alone"
        with started(folder, config(journal)) as gateway:
            await eventually(lambda: not alive(runaway))
            assert gateway.stop() == 0
        assert not living(journal)
        assert not [*(folder / ".toolgrove" / "instances").iterdir()]


async def test_what_a_living_instance_started_is_left_alone(tmp_path: Path, journal: Journal) -> None:
    folder = tmp_path / "project"
    with anyio.fail_after(3 * DEADLINE), started(folder, config(journal)) as gateway:
        async with gateway.http("editor") as http:
            await call(http, "editor", "up_runaway")
            beside = Config.model_validate({"state": str(folder / ".toolgrove"), "agents": {}})
            async with Grove(beside):
                assert len(living(journal)) == 2
            assert (await call(http, "editor", "up_echo", {"text": "x"}))["content"][0]["text"] == "x"
        assert gateway.stop() == 0
    assert not living(journal)


async def test_a_process_that_only_has_the_id_of_an_old_child_is_left_alone(tmp_path: Path) -> None:
    """The file of an instance that is gone, whose children had our id and a later moment than ours."""
    folder = tmp_path / "state" / "instances"
    folder.mkdir(parents=True)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    lines = [{"pid": 2**22 - 1, "began": 1, "boot": boot}, {"pid": os.getpid(), "began": 1}]
    file = folder / "0123456789abcdef.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    async with Grove(Config.model_validate({"state": str(tmp_path / "state"), "agents": {}})):
        assert not file.exists()


def marked(folder: Path) -> list[int]:
    """The processes that have the mark of the instance which wrote itself down in a state folder."""
    (file,) = (folder / "instances").glob("*.jsonl")
    wanted = f"{MARK}={file.stem}.".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdecimal() and wanted in (entry / "environ").read_bytes() and alive(int(entry.name)):
                found.append(int(entry.name))
    return found


async def test_nothing_in_a_sandbox_outlives_a_gateway_that_is_killed(tmp_path: Path) -> None:
    """Bubblewrap ends with the gateway, and with it everything inside, in whichever session."""
    if (problem := obstacle()) is not None:
        assert not os.environ.get("CI"), "CI must have bubblewrap"
        pytest.skip(problem.reason)
    server = fake("ignore_eof", sandbox={"paths": [str(UPSTREAM.parent)]})
    with anyio.fail_after(2 * DEADLINE):
        with started(tmp_path, {**PROJECT, "mcpServers": {"up": server}}) as gateway:
            async with gateway.http("editor") as http:
                assert "error" not in await call(http, "editor", "up_runaway")
            left = marked(tmp_path / ".toolgrove")
            assert len(left) > 2, "bubblewrap, the server and what that started"
            os.kill(gateway.process.real_pid, signal.SIGKILL)
        await eventually(lambda: not [pid for pid in left if alive(pid)])


def test_a_process_that_is_about_to_begin_is_recognised() -> None:
    """For a moment Linux shows no environment of it, so one that a server started at its end could be missed."""
    for environment in [*([{MARK: "one"}] * 30), {}]:
        with subprocess.Popen(["/bin/sleep", "60"], env=environment) as child:
            try:
                assert environment_of(child.pid) == b"".join(f"{MARK}=one\0".encode() for _ in environment)
            finally:
                child.kill()

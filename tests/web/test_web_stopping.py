"""A gateway that is told to stop while its calls, its modules and its servers do not want to end."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from e2e.servers import child
from e2e.wire import Handshake, call_body
from faults.kit import Journal, alive, fake
from waiting import DEADLINE, eventually
from web.gateway import PROJECT, Gateway, call, events, started, toolgrove

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("NFR-REL-001")]
MAY_HAVE_RUN = "It may have run anyway: check before you call it again."
MODULE = """
import time
from pathlib import Path
from apcore import ModuleAnnotations
from pydantic import BaseModel


class Nothing(BaseModel):
    pass


class Endless:
    description = "Never returns."
    input_schema = Nothing
    output_schema = Nothing
    annotations = ModuleAnnotations(readonly={readonly})

    def execute(self, inputs, context):
        Path({sign!r}).touch()
        time.sleep(10**9)
"""


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


def project(folder: Path, journal: Journal) -> dict[str, Any]:
    """A module that blocks its thread for ever, and a server that heeds nothing; its tool `hang` changes something."""
    modules = folder / "extensions" / "say"
    modules.mkdir(parents=True)
    for name, readonly in (("endless", False), ("look", True)):
        (modules / f"{name}.py").write_text(MODULE.format(sign=str(folder / name), readonly=readonly))
    server = fake("ignore_eof", journal, timeout=3600, changes=["erase", "hang"])
    store = {"store": f"sqlite:{folder / 'grove.db'}", "payloadTypes": {"Note": {}}}
    return {**PROJECT, "workspace": store, "mcpServers": {"up": server}, "extensions": "extensions"}


async def ended(process: subprocess.Popen[bytes]) -> int:
    return await anyio.to_thread.run_sync(process.wait, DEADLINE)


async def records(gateway: Gateway, tool: str) -> list[str]:
    async with gateway.http("operator") as http:
        items = (await http.get("/api/audit", params={"tool": tool})).json()["items"]
        return [record["outcome"] for record in items]


async def test_calls_that_do_not_end_are_cut_off_and_everybody_is_told_what_is_known(
    tmp_path: Path, journal: Journal
) -> None:
    """Outside calls over both eras and in a run, a module that changes something, and one that only looks."""
    answers: dict[str, Any] = {}
    with anyio.fail_after(3 * DEADLINE):
        with started(tmp_path, project(tmp_path, journal)) as gateway:
            async with gateway.http("editor") as http, anyio.create_task_group() as group:

                async def plain(tool: str) -> None:
                    answers[tool] = await call(http, "editor", tool)

                async def legacy() -> None:
                    session = Handshake(http, gateway.address("editor"))
                    await session.__aenter__()
                    told = await session.call("up_hang", {"text": "legacy"})
                    answers["legacy"] = told["result"]["structuredContent"]

                async def run() -> None:
                    body = {"calls": [{"tool": "up_hang", "arguments": {"text": "run"}}, {"tool": "get_node"}]}
                    answers["run"] = events((await http.post("/agents/editor/runs", json=body)).text)

                group.start_soon(plain, "up_hang")
                group.start_soon(legacy)
                group.start_soon(run)
                group.start_soon(plain, "say-endless")
                group.start_soon(plain, "say-look")
                await journal.wrote("hangs", 3)
                await eventually(lambda: (tmp_path / "endless").exists() and (tmp_path / "look").exists())
                gateway.process.send_signal(signal.SIGTERM)
            assert await ended(gateway.process) == 0
        assert "Traceback" not in gateway.log, gateway.log
        assert not [pid for pid in journal.pids if alive(pid)]
        for key in ("up_hang", "legacy", "say-endless"):
            error = answers[key]["error"]
            assert (error["code"], error["reason"]) == ("internal", "cut_off")
            assert error["message"].endswith(MAY_HAVE_RUN)
        assert "may have run" not in answers["say-look"]["error"]["message"]
        _, failed, _, not_run, finished = answers["run"]
        assert failed["type"] == not_run["type"] == "tool_failed"
        assert failed["error"]["message"].endswith(MAY_HAVE_RUN)
        assert "was not run" in not_run["error"]["message"]
        assert finished["type"] == "run_finished"
        tokens = gateway.tokens
        with started(tmp_path) as gateway:
            gateway.tokens = tokens
            outcomes = await records(gateway, "up_hang")
            assert sorted(outcomes) == ["begun"] * 3 + ["unknown"] * 3
            assert sorted(await records(gateway, "say-endless")) == ["begun", "unknown"]
            assert await records(gateway, "say-look") == ["cancelled"]
            async with gateway.http("editor") as http:
                again = await call(http, "editor", "up_hang")
                assert again["error"]["reason"] == "outcome_unknown"
            assert gateway.stop() == 0


async def test_a_desktop_client_is_told_too(tmp_path: Path, journal: Journal) -> None:
    config = project(tmp_path, journal)
    (tmp_path / "toolgrove.yaml").write_text(json.dumps({**config, "startupBudget": 30}))
    command = toolgrove("stdio", "--config", str(tmp_path / "toolgrove.yaml"), "--agent", "editor")
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with anyio.fail_after(2 * DEADLINE), child(command, **streams) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(call_body("say-endless")).encode() + b"\n")
        process.stdin.flush()
        await eventually(lambda: (tmp_path / "endless").exists())
        process.send_signal(signal.SIGTERM)
        told = json.loads(await anyio.to_thread.run_sync(process.stdout.readline))
        assert told["result"]["_meta"]["toolgrove/error"]["message"].endswith(MAY_HAVE_RUN), told
        assert await ended(process) == 0
    assert not [pid for pid in journal.pids if alive(pid)]


async def test_a_gateway_that_drains_is_unready_and_serves_on_until_its_time_is_over(tmp_path: Path) -> None:
    with anyio.fail_after(2 * DEADLINE), started(tmp_path, {**PROJECT, "drain": 600}) as gateway:

        async def unready() -> bool:
            async with gateway.http("editor") as http:
                told = await http.get("/ready")
            return (told.status_code, told.json()) == (503, {"status": "unready", "troubles": ["stopping"]})

        gateway.process.send_signal(signal.SIGTERM)
        await eventually(unready)
        async with gateway.http("editor") as http:
            assert "error" not in await call(http, "editor", "get_node", {"nodeId": "root"})
        gateway.process.send_signal(signal.SIGTERM)  # who cannot wait says so once more
        assert await ended(gateway.process) == 0
    assert "Traceback" not in gateway.log, gateway.log


async def test_draining_ends_by_itself(tmp_path: Path) -> None:
    with anyio.fail_after(2 * DEADLINE), started(tmp_path, {**PROJECT, "drain": 0.2}) as gateway:
        gateway.process.send_signal(signal.SIGTERM)
        assert await ended(gateway.process) == 0
    assert "unready from now on, and stopping in 0.2 seconds" in gateway.log

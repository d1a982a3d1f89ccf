"""`toolgrove demo` as a person runs it: one process, a console's address, and everything there is to see."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import anyio
import httpx2
import pytest

from demo.running import DEADLINE, demo, operator
from e2e.servers import child
from warm.command import python

pytestmark = pytest.mark.anyio


async def test_the_first_minute_shows_everything(tmp_path: Path) -> None:
    with demo(tmp_path, "--still") as greeting:
        assert greeting["agents"].keys() == {"researcher", "gardener", "sprinkler", "coordinator"}
        async with operator(greeting) as http:
            assert (await http.get("/console")).status_code == 200
            project = (await http.get("/api/project")).json()
            assert project["pendingApprovals"] == 1
            assert {source["name"] for source in project["sources"]} >= {"shop", "time"}
            await _has_a_yesterday(http)
            (waiting,) = (await http.get("/api/approvals?state=pending")).json()["items"]
            assert waiting["tool"] == "shop_place_order"
            assert len((await http.get("/api/audit?limit=1000")).json()["items"]) > 30
            with anyio.fail_after(DEADLINE):
                async with http.stream("GET", "/api/events") as events:
                    lines = events.aiter_lines()
                    assert await anext(lines) == "event: watching"
                    await http.post(f"/api/approvals/{waiting['id']}", json={"approve": True})
                    async for line in lines:  # the gardener hears of it, orders, and notes the order in the tree
                        if line == "event: tree_changed":
                            break
            call = {"tool": "select_nodes", "arguments": {"queryDsl": "@type = Order"}}
            run = await http.post("/agents/researcher/runs", json={"calls": [call]})
            assert '"Order 1001"' in run.text


async def _has_a_yesterday(http: httpx2.AsyncClient) -> None:
    """The charts live from the first moment on: by real records, marked as the sample's."""
    with anyio.fail_after(DEADLINE):
        while len(minutes := (await http.get("/api/traffic")).json()["minutes"]) < 50:  # counted in beside requests
            await anyio.sleep(0.05)
    assert minutes[-1]["minute"] - minutes[0]["minute"] > 12 * 3600
    assert sum(minute["refusals"] for minute in minutes) > 0
    assert sum(minute["failures"] for minute in minutes) > 0
    (earlier,) = (await http.get("/api/audit?tool=get_view&agent=researcher&newest=1&limit=1")).json()["items"]
    assert (earlier["session"], earlier["outcome"]) == ("sample", "success")
    assert (await http.get("/api/audit/verify")).json()["whole"]


async def test_the_sprinkler_works_while_a_person_watches(tmp_path: Path) -> None:
    with demo(tmp_path) as greeting, anyio.fail_after(DEADLINE):
        async with operator(greeting) as http, http.stream("GET", "/api/events") as events:
            async for line in events.aiter_lines():
                if line.startswith("data: ") and '"tree_changed"' in line:
                    event = json.loads(line.removeprefix("data: "))
                    assert (event["agent"], event["tool"]) == ("sprinkler", "update_payload")
                    break


async def test_a_second_start_goes_on_with_the_same_folder_and_a_new_link(tmp_path: Path) -> None:
    with demo(tmp_path, "--still") as first:
        async with operator(first) as http:
            before = (await http.get("/api/audit?newest=1&limit=1")).json()["items"][0]["number"]
    file = tmp_path / "toolgrove.yaml"
    file.write_text(file.read_text("utf-8").replace("kitchen garden", "my garden"), "utf-8")
    with demo(tmp_path, "--still") as second:
        assert set(second["tokens"]) == {"(operator)"}
        assert second["tokens"] != first["tokens"]
        async with operator(second) as http:
            project = (await http.get("/api/project")).json()
            assert (project["project"], project["pendingApprovals"]) == ("my garden", 1)
            since = (await http.get(f"/api/audit?after={before}")).json()["items"]
            calls = [record["operation"] for record in since if "kind" not in record]
            assert calls == ["get_node"]  # the garden is there, and still asked for


@pytest.mark.parametrize(("flags", "opened"), [((), True), (("--no-browser",), False)])
async def test_the_console_is_opened_where_there_is_a_display(
    tmp_path: Path, flags: tuple[str, ...], opened: bool
) -> None:
    told = tmp_path / "told"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {told}.new && mv {told}.new {told}\n')
    browser.chmod(0o755)
    with demo(tmp_path / "project", "--still", *flags, DISPLAY=":9", BROWSER=str(browser)) as greeting:
        if opened:
            with anyio.fail_after(DEADLINE):
                while not told.exists():
                    await anyio.sleep(0.01)
            assert told.read_text().strip() == greeting["console"]
    assert told.exists() is opened


def test_a_start_into_a_file_or_a_pipe_begins_with_a_sign_of_life(tmp_path: Path) -> None:
    words = ["demo", "--port", "0", "--folder", str(tmp_path / "new"), "--still", "--no-browser"]
    surroundings = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    with child(python("-m", "toolgrove", *words), **surroundings) as process:
        assert process.stdout is not None
        assert process.stdout.readline().decode() == f"Starting the demo in {tmp_path / 'new'} …\n"
        assert any(line.startswith(b"Console: http://") for line in process.stdout)


def test_a_port_in_use_is_told_before_anything_is_written(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = python("-m", "toolgrove", "demo", "--port", port, "--folder", str(tmp_path / "new"))
        said = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert said.returncode == 1
    assert said.stderr.count("\n") == 1
    assert "name another with --port" in said.stderr
    assert not (tmp_path / "new").exists()

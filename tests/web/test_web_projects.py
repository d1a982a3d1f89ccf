"""Several projects in one process: one address, everything else apart."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cli_kit import at_a_terminal
from e2e.wire import call_body, messages, modern_headers
from waiting import DEADLINE, wait_until
from warm.command import Process
from web.gateway import started, toolgrove

NOTES = {"workspace": {"store": "sqlite:grove.db", "payloadTypes": {"Note": {}}}}


def greeting(process: Process) -> Any:
    assert process.stdout is not None
    text = b""
    while not text.rstrip().endswith(b"\n}"):
        text += process.stdout.readline()
    return json.loads(text)


def test_projects_of_a_folder_share_an_address_and_nothing_else(tmp_path: Path) -> None:
    for name in ("garden", "my shop"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "toolgrove.yaml").write_text(json.dumps({"project": name, **NOTES}))
    command = toolgrove("serve", str(tmp_path), "--port", "0", "--json")
    with (tmp_path / "log").open("w") as log, Process(command, stdout=subprocess.PIPE, stderr=log) as process:
        projects = greeting(process)["projects"]
        garden, shop = projects["garden"], projects["my shop"]
        base = garden["console"].partition("/p/")[0]
        with httpx2.Client(timeout=DEADLINE, verify=False) as http:

            def call(project: dict[str, Any], whose: dict[str, Any], tool: str, **arguments: Any) -> Any:
                headers = {"Authorization": f"Bearer {whose['tokens']['editor']}"} | modern_headers("tools/call", tool)
                answer = http.post(project["agents"]["editor"], json=call_body(tool, arguments), headers=headers)
                return answer.status_code if answer.status_code != 200 else messages(answer)[-1]["result"]

            root = call(garden, garden, "get_node", nodeId="root")["structuredContent"]
            added = call(
                garden,
                garden,
                "add_child",
                parentNodeId="root",
                payloadType="Note",
                payloadProps={},
                versionToken=root["version"],
            )
            assert added["isError"] is False
            assert call(garden, garden, "get_node", nodeId="root")["structuredContent"]["childrenCount"] == 1
            assert call(shop, shop, "get_node", nodeId="root")["structuredContent"]["childrenCount"] == 0
            assert call(shop, garden, "get_node", nodeId="root") == 401
            index = http.get(f"{base}/")
            assert [f"/p/{name}/console" in index.text for name in ("garden", "my%20shop")] == [True, True]
            assert "tg_" not in index.text
            assert http.get(f"{base}/p/garden").headers["location"] == "/p/garden/console"
            assert http.get(f"{base}/p/garden/").headers["location"] == "/p/garden/console"
            assert http.get(f"{base}/p/garden/console").status_code == 200
            assert http.get(f"{base}/ready").json()["projects"] == {"garden": "ok", "my shop": "ok"}
            assert http.get(f"{base}/p/none/console").status_code == 404
            assert http.get(f"{base}/agents/editor/mcp").status_code == 404
            assert http.get(f"{base}/", headers={"Host": "elsewhere.example"}).status_code == 421
        process.terminate()
        assert process.wait(timeout=DEADLINE) == 0
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ({"project": "x"}, {"project": "x", "state": "other"}, "are both called 'x'"),
        ({"project": "x"}, {"project": "y"}, "Add 'state: .toolgrove-b' to"),
    ],
)
def test_projects_that_would_share_what_is_kept_are_refused(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], told: str
) -> None:
    for name, config in (("a.yaml", first), ("b.yaml", second)):
        (tmp_path / name).write_text(json.dumps(config))
    done = subprocess.run(
        toolgrove("serve", "a.yaml", "b.yaml"), cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE
    )
    assert (done.returncode, told in done.stderr) == (1, True)


def test_a_gateway_stands_by_until_the_store_is_free_and_takes_over(tmp_path: Path) -> None:
    with started(tmp_path, NOTES) as first:
        with at_a_terminal("serve", "--wait", "--port", str(first.port), cwd=tmp_path, width=200) as second:
            second.read_until("Standing by: another process has the store .*grove.db")
            refused = subprocess.run(
                toolgrove("serve", "--port", "0"), cwd=tmp_path, capture_output=True, timeout=DEADLINE
            )
            assert b"'toolgrove serve --wait' stands by until it is free" in refused.stderr
            first.process.terminate()
            ready = rf"Ready at http://127.0.0.1:{first.port}. Ctrl\+C stops."
            second.read_until(rf"Sign in: toolgrove open\n(.|\n)*{ready}")
            call = subprocess.run(
                toolgrove("call", "editor", "get_node", "nodeId=root"),
                cwd=tmp_path,
                capture_output=True,
                timeout=DEADLINE,
            )
            assert call.returncode == 0
            second.read_until(r"editor +get_node +ok")
            first.write("agentz: {}")
            second.read_until(
                r"ERROR: .*unknown key; did you mean 'agents'\?\n {10}The configuration that was read before"
            )
            second.interrupt()
        assert second.process.returncode == 0


def test_the_console_is_opened_with_a_sign_in_of_its_own(tmp_path: Path) -> None:
    with started(tmp_path) as gateway:
        command = toolgrove("open", "--no-browser", "--json")
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=DEADLINE, check=True)
        console, _, token = json.loads(done.stdout)["console"].partition("#token=")
        assert console == f"{gateway.base}/console"
        with httpx2.Client(base_url=gateway.base, timeout=DEADLINE, verify=False) as http:

            def is_let_in(headers: dict[str, str]) -> bool:
                return http.get("/api/project", headers=headers).status_code == 200

            wait_until(lambda: is_let_in({"Authorization": f"Bearer {token}"}))
            assert is_let_in(gateway.headers("operator"))
        gateway.stop()
    none = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=DEADLINE)
    assert (none.returncode, b"start one with 'toolgrove serve'" in none.stdout) == (1, True)

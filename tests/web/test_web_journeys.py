"""Whole journeys through real clients: two agents at one tree, approvals, sub-agents, sessions, stdio, a model."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from e2e.wire import ERAS, MODERN
from faults.kit import Journal, fake
from mcp_text import text_of, told
from runners.endpoint import Reply, ask, say
from runners.endpoint import serving as model
from waiting import DEADLINE, eventually
from web.gateway import AGENTS, PROJECT, Gateway, call, events, serving, toolgrove

pytestmark = pytest.mark.anyio
BOTH_ERAS = pytest.mark.parametrize("era", ERAS)
CAREFUL = {"role": "editor", "tools": ["get_node", "up_*"], "approve": ["up_erase"]}


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Journal:
    return Journal(tmp_path_factory.mktemp("journal") / "journal")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, journal: Journal) -> Iterator[Gateway]:
    agents = {**AGENTS, "careful": CAREFUL, "other": CAREFUL}
    config = {**PROJECT, "mcpServers": {"up": fake(journal=journal)}, "agents": agents}
    with serving(tmp_path_factory.mktemp("project"), config) as served:
        yield served


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    content = told(result)
    assert result.is_error is ("error" in content)
    return content


async def note(client: Client, name: str, **more: Any) -> dict[str, Any]:
    """Add a note below the root."""
    added = {"parentNodeId": "root", "payloadType": "Note", "payloadProps": {"name": name}, **more}
    return await answer(client, "add_child", **added)


@BOTH_ERAS
async def test_two_agents_work_on_one_tree_each_with_its_own_tools(gateway: Gateway, era: str) -> None:
    async with gateway.connect("researcher", era) as researcher, gateway.connect("editor", era) as editor:
        seen = {tool.name for tool in (await researcher.list_tools()).tools}
        assert seen == {
            "get_node",
            "get_path",
            "get_common_ancestor",
            "get_subtree",
            "get_view",
            "get_ruleset",
            "search",
            "select_nodes",
        }
        assert seen < {tool.name for tool in (await editor.list_tools()).tools}

        version = (await answer(editor, "get_node", nodeId="root"))["version"]
        written = await note(editor, f"seen-{era}", versionToken=version)
        found = await answer(researcher, "select_nodes", queryDsl=f"name = seen-{era}")
        assert [node["nodeId"] for node in found["items"]] == [written["nodeId"]]
        refused = await note(researcher, "x", versionToken=written["version"])
        assert refused["error"]["code"] == "not_found"


@BOTH_ERAS
async def test_a_conflict_is_resolved_and_a_retry_has_one_effect(gateway: Gateway, era: str) -> None:
    name, key = f"once-{era}", f"key-{era}"
    async with gateway.connect("editor", era) as first, gateway.connect("editor", era) as second:
        stale = (await answer(first, "get_node", nodeId="root"))["version"]
        await note(second, f"before-{era}", versionToken=stale)
        conflict = await note(first, name, versionToken=stale, idempotencyKey=key)
        assert conflict["error"]["code"] == "conflict"
        latest = conflict["error"]["latestVersion"]
        written = await note(first, name, versionToken=latest, idempotencyKey=key)
        assert "error" not in written
        async with anyio.create_task_group() as group:  # retries race each other, over both connections

            async def retry(client: Client) -> None:
                assert await note(client, name, versionToken=latest, idempotencyKey=key) == written

            for client in (first, second) * 5:
                group.start_soon(retry, client)
        found = await answer(first, "select_nodes", queryDsl=f"name = {name}")
        assert len(found["items"]) == 1
        reused = await note(first, "another", versionToken=latest, idempotencyKey=key)
        assert reused["error"]["reason"] == "idempotency_key_reused"


@BOTH_ERAS
async def test_an_approved_call_goes_through_once(gateway: Gateway, journal: Journal, era: str) -> None:
    arguments = {"text": f"shelf of {era}"}
    before = journal.received("tools/call", "erase")
    async with gateway.connect("careful", era) as client, gateway.connect("other", era) as other:
        asked = (await answer(client, "up_erase", **arguments))["error"]
        assert (asked["code"], asked["reason"]) == ("forbidden", "approval_required")
        async with gateway.http("operator") as operator:
            pending = (await operator.get("/api/approvals", params={"state": "pending"})).json()["items"]
            (waiting,) = [one for one in pending if one["id"] == asked["approvalId"]]
            assert (waiting["agent"], waiting["tool"], waiting["arguments"]) == ("careful", "up_erase", arguments)
            assert waiting["definition"]["name"] == "up_erase"
            address = f"/api/approvals/{asked['approvalId']}"
            decided = await operator.post(address, json={"approve": True, "reason": "fine"})
            assert (decided.status_code, decided.json()["state"]) == (200, "approved")
            again = await operator.post(address, json={"approve": False})
            assert again.status_code == 409

            assert (await answer(client, "up_erase", text="another shelf"))["error"]["reason"] == "approval_required"
            assert (await answer(other, "up_erase", **arguments))["error"]["reason"] == "approval_required"
            assert journal.received("tools/call", "erase") == before
            done = await client.call_tool("up_erase", arguments)
            assert (done.is_error, text_of(done)) == (False, "erased")
            assert (await answer(client, "up_erase", **arguments))["error"]["reason"] == "approval_required"
            assert journal.received("tools/call", "erase") == before + 1
            assert (await operator.get(address)).json()["state"] == "used"


async def test_a_rejected_call_says_who_and_why(gateway: Gateway, journal: Journal) -> None:
    before = journal.received("tools/call", "erase")
    async with gateway.http("careful") as http, gateway.http("operator") as operator:
        asked = (await call(http, "careful", "up_erase", {"text": "no"}))["error"]
        await operator.post(f"/api/approvals/{asked['approvalId']}", json={"approve": False, "reason": "not today"})
        refused = (await call(http, "careful", "up_erase", {"text": "no"}))["error"]
        assert refused["reason"] == "approval_rejected"
        assert "not today" in refused["message"]
        missing = await operator.post("/api/approvals/none", json={"approve": True})
        assert missing.status_code == 404
        for body in ({}, {"approve": "yes"}, {"approve": True, "by": "me"}, [True]):
            odd = await operator.post(f"/api/approvals/{asked['approvalId']}", json=body)
            assert (odd.status_code, odd.json()["error"]["code"]) == (400, "invalid_argument")
    assert journal.received("tools/call", "erase") == before


async def test_racing_calls_share_one_approval_and_only_one_gets_through(gateway: Gateway, journal: Journal) -> None:
    before = journal.received("tools/call", "erase")
    answers: list[dict[str, Any]] = []
    async with gateway.http("careful") as http, gateway.http("operator") as operator:
        asked = (await call(http, "careful", "up_erase", {"text": "race"}))["error"]
        await operator.post(f"/api/approvals/{asked['approvalId']}", json={"approve": True})
        async with anyio.create_task_group() as group:

            async def attempt() -> None:
                answers.append(await call(http, "careful", "up_erase", {"text": "race"}))

            for _ in range(10):
                group.start_soon(attempt)
    assert sum("error" not in one for one in answers) == 1
    assert journal.received("tools/call", "erase") == before + 1


async def test_a_named_session_has_its_own_view_of_the_tree(gateway: Gateway) -> None:
    async def expanded(http: httpx2.AsyncClient, session: str | None) -> bool:
        meta = {} if session is None else {"_meta": {"toolgrove/session": session}}
        view = await call(http, "editor", "get_view", {"rootNodeId": "root"}, **meta)
        is_expanded: bool = view["view"]["isExpanded"]
        return is_expanded

    async with gateway.http("editor") as http, gateway.http("operator") as operator:
        version = (await call(http, "editor", "get_node", {"nodeId": "root"}))["version"]
        opened = {"nodeId": "root", "versionToken": version}
        assert "error" not in await call(http, "editor", "expand_node", opened, _meta={"toolgrove/session": "one"})
        assert await expanded(http, "one")
        assert not await expanded(http, "two")
        assert not await expanded(http, None)
        assert not await expanded(operator, "one"), "the operator's sessions are never the agent's"
        for odd in ("", "x" * 129, 7, None, ["one"]):
            assert not await expanded(http, odd)  # type: ignore[arg-type]
        records = (await operator.get("/api/audit", params={"tool": "expand_node"})).json()["items"]
        assert [record["session"] for record in records] == ["one"]


async def test_a_model_works_through_the_exported_tools(gateway: Gateway) -> None:
    """An OpenAI-style loop: definitions from one address, calls through another, results back to the model."""
    added = {"parentNodeId": "root", "payloadType": "Note", "payloadProps": {"name": "by a model"}}

    def think(request: dict[str, Any]) -> Reply:
        results = [json.loads(one["content"]) for one in request["messages"] if one["role"] == "tool"]
        names = {tool["function"]["name"] for tool in request["tools"]}
        assert {"get_node", "add_child"} <= names
        if not results:
            return ask(("get_node", {"nodeId": "root"}), ("no_such_tool", {}))
        if len(results) == 2:
            assert results[1]["error"]["code"] == "not_found"
            return ask(("add_child", {**added, "versionToken": results[0]["version"]}))
        return say(f"Wrote {results[2]['nodeId']}.")

    with anyio.fail_after(DEADLINE):
        async with model(think) as endpoint, gateway.http("editor") as http, httpx2.AsyncClient() as openai:
            tools = (await http.get("/agents/editor/openai-tools")).json()
            chat: list[dict[str, Any]] = [{"role": "user", "content": "Write a note."}]
            while True:
                body = {"model": "scripted", "messages": chat, "tools": tools}
                said = (await openai.post(f"{endpoint.url}/chat/completions", json=body)).json()
                message = said["choices"][0]["message"]
                chat.append(message)
                if not message.get("tool_calls"):
                    break
                wanted = [one["function"] for one in message["tool_calls"]]
                calls = [{"tool": one["name"], "arguments": json.loads(one["arguments"])} for one in wanted]
                run = events((await http.post("/agents/editor/runs", json={"calls": calls})).text)
                ends = [event for event in run if event["type"] in ("tool_succeeded", "tool_failed")]
                for one, end in zip(message["tool_calls"], ends, strict=True):
                    content = end.get("result") or {"error": end["error"]}
                    chat.append({"role": "tool", "tool_call_id": one["id"], "content": json.dumps(content)})
            found = await call(http, "editor", "select_nodes", {"queryDsl": "name = 'by a model'"})
    assert message["content"] == f"Wrote {found['items'][0]['nodeId']}."


async def test_definitions_can_be_exported_strict_and_annotated(gateway: Gateway) -> None:
    async with gateway.http("researcher") as http:
        plain = (await http.get("/agents/researcher/openai-tools")).json()
        strict = (await http.get("/agents/researcher/openai-tools?strict=1&embedAnnotations=true")).json()
    assert [one["function"]["name"] for one in plain] == [one["function"]["name"] for one in strict]
    told = {one["function"]["name"]: one["function"]["strict"] for one in strict}
    assert told["get_node"] is True
    assert told["search"] is False, "what a strict mode cannot say stays out of it"
    assert "readonly=true" in strict[0]["function"]["description"]
    assert "strict" not in plain[0]["function"]


async def test_a_receipt_says_to_the_operator_why_a_tool_is_not_there(gateway: Gateway) -> None:
    async with gateway.http("operator") as http:
        receipt = json.dumps((await http.get("/agents/researcher/receipt")).json())
    assert "up_erase" in receipt
    assert "denied" in receipt


async def test_a_sub_agent_at_depth_one_works_with_less_and_answers(tmp_path: Path) -> None:
    """Through `spawn_agents` over MCP, driven by a scripted model behind real HTTP."""
    offered: list[set[str]] = []

    def think(request: dict[str, Any]) -> Reply:
        offered.append({tool["function"]["name"] for tool in request.get("tools", ())})
        results = [json.loads(one["content"]) for one in request["messages"] if one["role"] == "tool"]
        return say(f"root is a {results[0]['payloadType']}") if results else ask(("get_node", {"nodeId": "root"}))

    agents = {
        "coordinator": {"tools": ["get_node", "spawn_agents", "list_available_agents"]},
        "helper": {"role": "editor", "tools": ["get_node", "add_child", "spawn_agents"], "maxDepth": 1},
    }
    with anyio.fail_after(DEADLINE):
        async with model(think) as endpoint:
            runner = {"kind": "openai", "url": endpoint.url, "model": "scripted"}
            with serving(tmp_path / "project", {**PROJECT, "agents": agents, "runner": runner}) as served:
                async with served.connect("coordinator") as client:
                    listed = await answer(client, "list_available_agents")
                    assert "helper" in json.dumps(listed)
                    work = [{"agent": "helper", "input": "What is the root?"}]
                    spawned = await answer(client, "spawn_agents", agents=work)
                async with served.http("operator") as operator:
                    records = (await operator.get("/api/audit", params={"agent": "helper", "kind": "call"})).json()[
                        "items"
                    ]
    assert spawned["results"] == [{"agent": "helper", "output": "root is a Root"}]
    assert offered[0] == {"get_node"}, "neither what the coordinator has not, nor spawning at the maximal depth"
    assert [record["operation"] for record in records] == ["get_node"]


@asynccontextmanager
async def desktop(file: Path, agent: str, era: str) -> AsyncIterator[Client]:
    """As a desktop client starts a server: a command line from its configuration."""
    command = toolgrove("stdio", "--agent", agent, "--config", str(file))
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    with (file.parent / "stderr").open("w") as errors:
        transport = stdio_client(server, errlog=errors)
        mode: Any = "auto" if era == MODERN else era
        async with Client(transport, mode=mode, read_timeout_seconds=DEADLINE) as client:
            assert (client.protocol_version == MODERN) is (era == MODERN)
            yield client


@BOTH_ERAS
async def test_a_desktop_client_is_one_agent_over_stdio(tmp_path: Path, era: str) -> None:
    file = tmp_path / "toolgrove.yaml"
    file.write_text(json.dumps(PROJECT))
    async with desktop(file, "editor", era) as client:
        assert client.server_info is not None
        assert client.server_info.name == "editor"
        assert {"get_node", "add_child"} <= {tool.name for tool in (await client.list_tools()).tools}
        version = (await answer(client, "get_node", nodeId="root"))["version"]
        written = await note(client, "from the desktop", versionToken=version, idempotencyKey="k")
        assert await note(client, "from the desktop", versionToken=version, idempotencyKey="k") == written
    async with desktop(file, "researcher", era) as client:
        assert "add_child" not in {tool.name for tool in (await client.list_tools()).tools}
        assert (await note(client, "x"))["error"]["code"] == "not_found"
    assert "Traceback" not in (tmp_path / "stderr").read_text()


@BOTH_ERAS
async def test_a_desktop_client_sees_what_the_file_changes(tmp_path: Path, era: str) -> None:
    file = tmp_path / "toolgrove.yaml"
    file.write_text(json.dumps(PROJECT))

    def said(text: str) -> bool:
        return text in (tmp_path / "stderr").read_text()

    async with desktop(file, "researcher", era) as client:

        async def tools() -> set[str]:
            return {tool.name for tool in (await client.list_tools()).tools}

        async def widened() -> bool:
            return await tools() == {"get_node", "list_children"}

        before = await tools()
        assert "list_children" not in before
        file.write_text("agents: {")
        await eventually(lambda: said("stays in use"))
        assert await tools() == before
        agents = {**PROJECT["agents"], "researcher": {"tools": ["get_node", "list_children"]}}
        file.write_text(json.dumps({**PROJECT, "agents": agents}))
        await eventually(widened)
        assert "error" not in await answer(client, "list_children", nodeId="root")
    assert "Traceback" not in (tmp_path / "stderr").read_text()


def test_stdio_ends_when_its_agent_is_taken_out_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "toolgrove.yaml"
    file.write_text(json.dumps(PROJECT))
    command = toolgrove("stdio", "--agent", "editor", "--config", str(file))
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(hello).encode() + b"\n")
        process.stdin.flush()
        assert b'"editor"' in process.stdout.readline()
        agents = {name: agent for name, agent in PROJECT["agents"].items() if name != "editor"}
        file.write_text(json.dumps({**PROJECT, "agents": agents}))
        assert process.wait(DEADLINE) == 1
        assert b"No agent 'editor' is defined" in process.stderr.read()


def test_stdio_without_such_an_agent_says_so_and_ends(tmp_path: Path) -> None:
    file = tmp_path / "toolgrove.yaml"
    file.write_text(json.dumps(PROJECT))
    command = toolgrove("stdio", "--agent", "editr", "--config", str(file))
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Did you mean 'editor'?" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


async def test_what_a_run_tells_while_it_runs(gateway: Gateway) -> None:
    calls = [{"tool": "up_echo", "arguments": {"text": "hello"}}, {"tool": "up_refuse"}, "nonsense", {}]
    async with gateway.http("editor") as http:
        response = await http.post("/agents/editor/runs", json={"calls": calls})
    told = events(response.text)
    ends = ["tool_succeeded", "tool_failed", "tool_failed", "tool_failed"]
    assert [event["type"] for event in told] == [kind for end in ends for kind in ("tool_started", end)] + [
        "run_finished"
    ]
    assert told[1]["result"]["content"][0]["text"] == "hello"
    assert (told[-1]["succeeded"], told[-1]["failed"]) == (1, 3)
    assert response.headers["content-type"].startswith("text/event-stream")

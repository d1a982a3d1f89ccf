"""What happens at one replica counts at the other: decisions, changes, sessions, limits."""

from __future__ import annotations

import hashlib
import json
import signal
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest

from e2e.wire import Handshake, messages, modern_body, modern_headers
from replicas.fleet import Fleet, Replica
from waiting import DEADLINE, eventually
from web.gateway import call

pytestmark = [pytest.mark.anyio, pytest.mark.services]
ADD = {"parentNodeId": "root", "payloadType": "Note", "payloadProps": {}}


@pytest.fixture
def project(project: dict[str, Any]) -> dict[str, Any]:
    agents = {
        "careful": {"role": "editor", "tools": ["get_node", "add_child"], "approve": ["add_child"]},
        "asking": {"role": "editor", "tools": ["get_node", "add_child"], "approve": ["add_child"], "askClient": True},
        "limited": {"tools": ["get_node"], "rateLimit": "4/hour"},
    }
    return {**project, "agents": {**project["agents"], **agents}}


async def version(http: httpx2.AsyncClient, agent: str) -> str:
    return str((await call(http, agent, "get_node", {"nodeId": "root"}))["version"])


async def test_an_approval_asked_for_at_one_replica_and_given_at_the_other_lets_the_call_through(fleet: Fleet) -> None:
    with anyio.fail_after(2 * DEADLINE):
        async with fleet.http("careful", fleet.one) as here, fleet.http("operator", fleet.two) as there:
            form = {**ADD, "versionToken": await version(here, "careful"), "idempotencyKey": "k"}
            asked = (await call(here, "careful", "add_child", form))["error"]
            assert asked["reason"] == "approval_required"
            (waiting,) = (await there.get("/api/approvals", params={"state": "pending"})).json()["items"]
            assert waiting["id"] == asked["approvalId"]
            answer = await there.post(f"/api/approvals/{waiting['id']}", json={"approve": True})
            assert answer.status_code == 200, answer.text
            added = await call(here, "careful", "add_child", form)
            assert added["nodeId"]
            async with fleet.http("careful", fleet.two) as elsewhere:  # a retry there is the same call
                assert await call(elsewhere, "careful", "add_child", form) == added
            (used,) = (await there.get("/api/approvals", params={"state": "used"})).json()["items"]
            assert used["id"] == waiting["id"]


async def test_a_console_at_one_replica_sees_what_changes_at_the_other(fleet: Fleet) -> None:
    heard: list[dict[str, Any]] = []

    async def watch(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with fleet.http("operator", fleet.two) as http, http.stream("GET", "/api/events") as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    heard.append(json.loads(line[6:]))
                    if heard[-1]["type"] == "watching":
                        task_status.started()

    def of(kind: str) -> list[dict[str, Any]]:
        return [event for event in heard if event["type"] == kind]

    with anyio.fail_after(2 * DEADLINE):
        async with fleet.http("agent0", fleet.one) as http, anyio.create_task_group() as tasks:
            await tasks.start(watch)
            form = {**ADD, "versionToken": await version(http, "agent0")}
            added = await call(http, "agent0", "add_child", form)
            await eventually(lambda: of("tree_changed"))
            (changed,) = of("tree_changed")
            assert (changed["tool"], changed["chain"]) == ("add_child", ["agent0"])
            assert added["nodeId"] in changed["nodeIds"]
            tasks.cancel_scope.cancel()


async def test_who_knows_a_version_reads_it_at_the_other_replica_too(fleet: Fleet) -> None:
    with anyio.fail_after(2 * DEADLINE):
        async with fleet.http("agent0", fleet.one) as here, fleet.http("agent0", fleet.two) as there:
            known = await version(here, "agent0")
            for number in range(5):
                added = await call(here, "agent0", "add_child", {**ADD, "versionToken": known})
                meta = {"_meta": {"toolgrove/version": added["version"]}}
                seen = await call(there, "agent0", "get_node", {"nodeId": added["nodeId"]}, **meta)
                assert seen["nodeId"] == added["nodeId"], number
                known = (await call(there, "agent0", "add_child", {**ADD, "versionToken": added["version"]}))["version"]


async def test_a_session_that_comes_to_another_replica_is_told_so_once_and_begins_anew(fleet: Fleet) -> None:
    with anyio.fail_after(2 * DEADLINE):
        async with fleet.http("agent0", fleet.one) as here, fleet.http("agent0", fleet.two) as there:
            session = await Handshake(here, fleet.address("agent0", fleet.one)).__aenter__()
            session.client, session.address = there, fleet.address("agent0", fleet.two)
            asked = {"name": "get_node", "arguments": {"nodeId": "root"}}
            assert (await session.request("tools/call", asked)).status_code == 404
            async with Handshake(there, fleet.address("agent0", fleet.two)) as again:
                assert (await again.request("tools/call", asked)).status_code == 200


async def test_both_replicas_count_the_calls_of_an_agent_together(fleet: Fleet) -> None:
    with anyio.fail_after(2 * DEADLINE):
        async with fleet.http("limited", fleet.one) as here, fleet.http("limited", fleet.two) as there:
            for http in (here, there, here, there):
                assert "error" not in await call(http, "limited", "get_node", {"nodeId": "root"})
            for http in (here, there):
                assert (await call(http, "limited", "get_node", {"nodeId": "root"}))["error"]["code"] == "rate_limited"


async def test_a_replica_with_an_older_project_file_turns_unready_and_says_which_is_newer(fleet: Fleet) -> None:
    changed = fleet.one.gateway.file.read_text() + " "
    digest = hashlib.sha256(changed.encode()).hexdigest()

    async def troubles(replica: Replica) -> tuple[list[str], str | None]:
        told = await fleet.ready(replica)
        return told["troubles"], told.get("newerFile")

    async def outdated() -> bool:
        return await troubles(fleet.two) == (["file_outdated"], digest)

    async def well() -> bool:
        return await troubles(fleet.two) == ([], None)

    with anyio.fail_after(2 * DEADLINE):
        fleet.one.gateway.write(changed)
        await eventually(outdated)
        await fleet.until(fleet.two, up=False)
        assert await troubles(fleet.one) == ([], None)
        fleet.two.signal(signal.SIGKILL)  # and who starts with the old one does not make it the newest
        await fleet.two.ended()
        await anyio.to_thread.run_sync(fleet.two.start)
        await eventually(outdated)
        fleet.two.gateway.write(changed)
        await eventually(well)


async def asking(http: httpx2.AsyncClient, form: dict[str, Any], **params: Any) -> dict[str, Any]:
    asked = modern_body("tools/call", {"name": "add_child", "arguments": form, **params}, elicitation={})
    answer = await http.post("/agents/asking/mcp", json=asked, headers=modern_headers("tools/call", "add_child"))
    result: dict[str, Any] = messages(answer)[-1]["result"]
    return result


def approving(question: dict[str, Any]) -> dict[str, Any]:
    """What a client sends back that approves."""
    (name,) = question["inputRequests"]
    said = {name: {"action": "accept", "content": {"approve": True}}}
    return {"requestState": question["requestState"], "inputResponses": said}


async def test_an_answer_that_comes_to_another_replica_is_passed_to_the_one_that_asked(fleet: Fleet) -> None:
    with anyio.fail_after(2 * DEADLINE):
        async with fleet.http("asking", fleet.one) as here, fleet.http("asking", fleet.two) as there:
            form = {**ADD, "versionToken": await version(here, "asking")}
            question = await asking(here, form)
            again = await asking(there, form, requestState=question["requestState"])  # without an answer
            said = approving(again)
            added = await asking(there, form, **said)
            assert not added["isError"]
            child = await call(here, "asking", "get_node", {"nodeId": added["structuredContent"]["nodeId"]})
            root = await call(here, "asking", "get_node", {"nodeId": "root"})
            assert (child["parentId"], root["childrenCount"]) == ("root", 1)
            for http in (here, there):  # what was answered is over everywhere
                told = await asking(http, form, **said)
                assert "Call again" in told["content"][0]["text"]
            assert await call(here, "asking", "get_node", {"nodeId": "root"}) == root


async def test_an_answer_whose_replica_is_gone_is_told_to_call_again(fleet: Fleet) -> None:
    with anyio.fail_after(2 * DEADLINE):
        async with fleet.http("asking", fleet.one) as here, fleet.http("asking", fleet.two) as there:
            form = {**ADD, "versionToken": await version(here, "asking")}
            said = approving(await asking(here, form))
            fleet.one.signal(signal.SIGKILL)
            await fleet.one.ended()
            told = await asking(there, form, **said)
            assert told["isError"]
            assert "Call again" in told["content"][0]["text"]
            assert "requestState" in await asking(there, form)

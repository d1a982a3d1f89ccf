"""Delegation carries every obligation: what an agent may not do, nobody whom it sends may do for it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from grove_kit import ManualClock
from runners.scripted import Scripted, answers, made, through
from toolgrove import Config, Grove

pytestmark = pytest.mark.anyio
AGENTS: dict[str, Any] = {
    "alice": {"role": "editor", "tools": ["*"]},
    "bob": {"role": "reader", "tools": ["*"], "mayDelegate": ["add_child"]},
    "frozen": {"role": "editor", "tools": ["*"], "readOnly": True, "mayDelegate": ["add_child"]},
    "fenced": {"role": "editor", "tools": ["*"], "writeRoot": "n1"},
    "careful": {"role": "editor", "tools": ["*"], "approve": ["remove_*", "snapshot_*"]},
    "slow": {"role": "editor", "tools": ["*"], "rateLimit": "4/minute"},
    "lead": {"role": "editor", "tools": ["*", "spawn_agents"], "maxDepth": 9, "mayDelegate": ["add_child"]},
}
ADD = {"payloadType": "T", "payloadProps": {}}


@asynccontextmanager
async def project(**agents: Any) -> AsyncIterator[Grove]:
    """A tree with n1 and n2 below the root, each with a child."""
    config = Config.model_validate({"agents": {**AGENTS, **agents}})
    async with Grove(config, runner=Scripted(), clock=ManualClock()) as grove:
        alice = await grove.agent("alice")
        for parent in ("root", "root", "n1", "n2"):
            await made(alice, "add_child", {"parentNodeId": parent, **ADD})
        yield grove


async def sent(grove: Grove, path: list[str], *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """What the last agent of a path is answered, when the first one calls from outside."""
    first, *onward = path
    agent = await grove.agent(first)
    if not onward:
        return [await made(agent, name, arguments) for name, arguments in calls]
    return answers(await agent.call(*through(onward, *calls)), onward)


PATHS = [["alice"], ["lead", "alice"]]


@pytest.mark.parametrize("via", PATHS)
async def test_a_change_outside_an_ancestors_write_root_is_refused_and_names_whose_it_is(via: list[str]) -> None:
    async with project() as grove:
        inside, outside = await sent(
            grove,
            ["fenced", *via],
            ("add_child", {"parentNodeId": "n1", **ADD}),
            ("add_child", {"parentNodeId": "n2", **ADD}),
        )
    assert inside["nodeId"]
    assert outside["error"]["code"] == "forbidden"
    assert outside["error"]["reason"] == "write_root"
    assert "write root of agent 'fenced'" in outside["error"]["message"]


async def test_write_roots_hold_all_at_once() -> None:
    async with project(inner={"role": "editor", "tools": ["*"], "writeRoot": "n2"}) as grove:
        for parent in ("n1", "n2", "n4"):
            (answer,) = await sent(grove, ["fenced", "inner"], ("add_child", {"parentNodeId": parent, **ADD}))
            assert answer["error"]["reason"] == "write_root"


async def test_a_snapshot_of_another_is_not_deleted_through_its_owner_either() -> None:
    async with project() as grove:
        await sent(grove, ["alice"], ("snapshot_create", {"label": "mine"}))
        (direct,) = await sent(grove, ["fenced"], ("snapshot_delete", {"snapshotId": "s1"}))
        (delegated,) = await sent(grove, ["fenced", "alice"], ("snapshot_delete", {"snapshotId": "s1"}))
    assert direct["error"]["reason"] == delegated["error"]["reason"] == "write_root"


@pytest.mark.parametrize("via", PATHS)
async def test_a_call_waits_for_a_person_if_any_ancestors_would(via: list[str]) -> None:
    async with project() as grove:
        (asked,) = await sent(grove, ["careful", *via], ("remove_node", {"nodeId": "n3"}))
        assert asked["error"]["reason"] == "approval_required"
        assert "approve: remove_* of agent 'careful'" in asked["error"]["message"]
        await grove.approvals.decide(asked["error"]["approvalId"], approve=True, by="pat")
        (removed,) = await sent(grove, ["careful", *via], ("remove_node", {"nodeId": "n3"}))
    assert removed["removedCount"] == 1


async def test_an_approval_is_asked_for_a_tool_that_the_ancestor_only_lends() -> None:
    lender = {"role": "editor", "tools": ["spawn_agents"], "mayDelegate": ["*"], "approve": ["remove_*"]}
    async with project(lender=lender) as grove:
        (asked,) = await sent(grove, ["lender", "alice"], ("remove_node", {"nodeId": "n3"}))
    assert asked["error"]["reason"] == "approval_required"


@pytest.mark.parametrize(("first", "reason"), [("bob", "role"), ("frozen", "read_only")])
@pytest.mark.parametrize("via", PATHS)
async def test_the_role_is_the_lowest_of_the_chain_also_for_a_tool_that_is_lent(
    first: str, reason: str, via: list[str]
) -> None:
    async with project() as grove:
        lent, other = await sent(
            grove, [first, *via], ("add_child", {"parentNodeId": "n1", **ADD}), ("remove_node", {"nodeId": "n3"})
        )
    assert (lent["error"]["code"], lent["error"]["reason"]) == ("forbidden", reason)
    assert repr(first) in lent["error"]["message"]
    assert other["error"]["code"] == "not_found"


async def test_each_call_counts_in_every_window_of_the_chain_or_in_none() -> None:
    look = ("get_node", {"nodeId": "root"})
    async with project(alice={**AGENTS["alice"], "rateLimit": "9/minute"}) as grove:
        grove.clock.now += 120  # type: ignore[attr-defined]
        found = await sent(grove, ["slow", "alice"], *[look] * 6)
        codes = [one.get("error", {}).get("code") for one in found]
        assert codes == [None] * 3 + ["rate_limited"] * 3, "one of the four was spawn_agents"
        assert "of agent 'slow', on whose behalf you work," in found[-1]["error"]["message"]
        assert found[-1]["error"]["retryAfter"] == 60
        own = await sent(grove, ["alice"], *[look] * 8)
    assert [one.get("error", {}).get("code") for one in own] == [None] * 6 + ["rate_limited"] * 2, (
        "three of alice's nine were spent on behalf of slow; refused ones took no room"
    )


async def test_an_agent_that_stands_twice_in_a_chain_pays_once() -> None:
    twice = {"tools": ["*", "spawn_agents"], "rateLimit": "4/minute", "maySpawn": ["twice"]}
    async with project(twice=twice) as grove:
        found = await sent(grove, ["twice", "twice"], *[("get_node", {"nodeId": "root"})] * 4)
    assert ["error" in one for one in found] == [False, False, False, True]


async def test_may_spawn_names_who_may_be_started_and_another_looks_like_none() -> None:
    async with project(boss={"tools": ["*"], "maySpawn": ["bob", "boss"]}) as grove:
        boss = await grove.agent("boss")
        listed = await boss.call("list_available_agents")
        look = ("get_node", {"nodeId": "root"})
        names = ("alice", "ghost", "boss", "bob")
        forbidden, unknown, itself, bob = [await sent(grove, ["boss", name], look) for name in names]
    assert [one["name"] for one in listed["agents"]] == ["bob", "boss"]
    errors = [one[0]["error"] for one in (forbidden, unknown)]
    assert [error["code"] for error in errors] == ["not_found", "not_found"]
    assert errors[0]["message"].replace("alice", "ghost") == errors[1]["message"]
    assert itself[0]["nodeId"] == bob[0]["nodeId"] == "root"


async def test_without_may_spawn_an_agent_starts_every_other_one_but_not_itself() -> None:
    async with project() as grove:
        (answer,) = await sent(grove, ["alice", "alice"], ("get_node", {"nodeId": "root"}))
        listed = await (await grove.agent("alice")).call("list_available_agents")
    assert answer["error"]["code"] == "not_found"
    assert {one["name"] for one in listed["agents"]} == AGENTS.keys() - {"alice"}


async def test_whom_an_agent_may_not_start_nobody_starts_on_its_behalf() -> None:
    async with project(boss={"tools": ["*"], "maySpawn": ["lead"]}) as grove:
        (other,) = await sent(grove, ["boss", "lead", "alice"], ("get_node", {"nodeId": "root"}))
        (again,) = await sent(grove, ["lead", "alice", "lead"], ("get_node", {"nodeId": "root"}))
    assert other["error"]["code"] == again["error"]["code"] == "not_found"


async def test_the_receipt_of_a_delegated_agent_names_the_ancestor_that_took_a_tool_away() -> None:
    async with project(narrow={"role": "editor", "tools": ["get_node", "spawn_agents"]}) as grove:
        bob = await grove.agent("bob")
        narrow = await grove.agent("narrow", within=bob.bounds)
        alice = await grove.agent("alice", within=narrow.bounds)
    assert alice.receipt.chain == ("bob", "narrow", "alice")
    assert alice.receipt["search"].ancestor == "narrow"
    assert alice.receipt["remove_node"].ancestor == "bob"
    assert alice.receipt["get_node"].ancestor is None
    lent = await grove.agent("alice", within=bob.bounds)
    assert lent.receipt["add_child"].rule == "role 'reader' of agent 'bob': the tool changes something"
    assert lent.receipt["add_child"].ancestor == "bob"


async def test_a_delegated_run_takes_back_its_own_changes_only() -> None:
    async with project() as grove:
        nothing, added, taken_back = await sent(
            grove, ["lead", "alice"], ("undo", {}), ("add_child", {"parentNodeId": "n1", **ADD}), ("undo", {})
        )
        assert nothing["error"]["reason"] == "nothing_to_undo"
        assert taken_back["nodeIds"] == [added["nodeId"]]
        (kept,) = await sent(grove, ["lead", "alice"], ("add_child", {"parentNodeId": "n1", **ADD}))
        own, gone = await sent(grove, ["alice"], ("undo", {}), ("get_node", {"nodeId": kept["nodeId"]}))
    assert own["nodeIds"] == ["n4"], "what the delegated run added is not the outside client's to take back"
    assert "error" not in gone


async def test_a_delegated_run_sees_no_view_filter_or_bookmark_of_another() -> None:
    look: list[tuple[str, dict[str, Any]]] = [("list_bookmarks", {}), ("get_view", {})]
    keep: list[tuple[str, dict[str, Any]]] = [
        ("bookmark", {"nodeId": "n1", "label": "here"}),
        ("expand_node", {"nodeId": "root"}),
    ]
    async with project() as grove:
        fresh = await sent(grove, ["lead", "alice"], *look)
        await sent(grove, ["alice"], *keep)
        assert await shown(grove, ["lead", "alice"]) == _told(fresh), "the outside client's"
        while_it_lasts = await sent(grove, ["lead", "alice"], *keep, *look)
        assert while_it_lasts[2]["items"] == [{"label": "here", "nodeId": "n1"}]
        assert await shown(grove, ["lead", "alice"]) == _told(fresh), "a sibling's, or one that was there before"
        assert (await sent(grove, ["alice"], ("list_bookmarks", {})))[0]["items"] == while_it_lasts[2]["items"]


async def shown(grove: Grove, path: list[str]) -> list[dict[str, Any]]:
    return _told(await sent(grove, path, ("list_bookmarks", {}), ("get_view", {})))


def _told(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key != "version"} for one in found]


async def test_a_bookmark_of_a_delegated_run_goes_and_comes_with_its_node() -> None:
    async with project() as grove:
        found = await sent(
            grove,
            ["lead", "alice"],
            ("bookmark", {"nodeId": "n3", "label": "here"}),
            ("remove_node", {"nodeId": "n3"}),
            ("list_bookmarks", {}),
            ("undo", {}),
            ("list_bookmarks", {}),
            ("remove_bookmark", {"label": "here"}),
            ("list_bookmarks", {}),
        )
    assert [len(one["items"]) for one in (found[2], found[4], found[6])] == [0, 1, 0]


async def test_a_key_of_the_outside_client_is_not_the_delegated_runs() -> None:
    keyed = ("add_child", {"parentNodeId": "n1", **ADD, "idempotencyKey": "k"})
    async with project() as grove:
        (outside,) = await sent(grove, ["alice"], keyed)
        inside, again = await sent(grove, ["lead", "alice"], keyed, keyed)
        (sibling,) = await sent(grove, ["lead", "alice"], keyed)
    assert inside == again
    assert len({one["nodeId"] for one in (outside, inside, sibling)}) == 3


async def test_every_record_says_on_whose_behalf() -> None:
    async with project() as grove:
        before = len(grove.audit)
        await sent(grove, ["careful", "lead", "alice"], ("get_node", {"nodeId": "root"}))
        alice, lead, careful = list(grove.audit)[before:]
    assert [record["chain"] for record in (careful, lead, alice)] == [
        ["careful"],
        ["careful", "lead"],
        ["careful", "lead", "alice"],
    ]
    assert [record["depth"] for record in (careful, lead, alice)] == [0, 1, 2]
    assert "parentCallId" not in careful
    assert (lead["parentCallId"], alice["parentCallId"]) == (careful["callId"], lead["callId"])
    assert careful["runId"] == lead["runId"] == alice["runId"] == careful["callId"]
    assert lead["session"] == f"careful/{careful['callId']}.1"
    assert alice["session"] == f"{lead['session']}/{lead['callId']}.1"


async def test_all_that_happens_to_an_approval_says_on_whose_behalf() -> None:
    heard: list[dict[str, Any]] = []
    async with project() as grove:
        grove.listen(lambda event: heard.append(event.to_json()))
        (asked,) = await sent(grove, ["careful", "alice"], ("remove_node", {"nodeId": "n3"}))
        await grove.approvals.decide(asked["error"]["approvalId"], approve=True, by="pat")
        await grove.approvals.revoke(asked["error"]["approvalId"], by="pat")
        await grove.recorder.collect()
        records = list(grove.audit)
    events = [event for event in heard if event["type"].startswith("approval_")]
    people = [record for record in records if record["operation"].startswith("approval.")]
    assert [event["type"] for event in events] == ["approval_requested", "approval_decided", "approval_revoked"]
    assert [record["operation"] for record in people] == ["approval.approved", "approval.revoked"]
    inner = next(record for record in records if record["operation"] == "remove_node")
    for told in (*events, *people):
        assert (told["agent"], told["depth"], told["chain"]) == ("alice", 1, ["careful", "alice"])
        assert (told["runId"], told["parentCallId"]) == (inner["runId"], inner["parentCallId"])


async def test_the_sessions_of_one_spawn_are_counted() -> None:
    async with project() as grove:
        before = len(grove.audit)
        task = json.dumps([("get_node", {"nodeId": "root"})])
        spawned = [{"agent": name, "input": task} for name in ("alice", "bob", "alice")]
        await (await grove.agent("lead", session="tab")).call("spawn_agents", {"agents": spawned})
        *inner, outer = list(grove.audit)[before:]
    call = outer["callId"]
    assert {record["session"] for record in inner} == {f"tab/{call}.1", f"tab/{call}.2", f"tab/{call}.3"}


async def test_call_ids_of_two_processes_never_meet() -> None:
    ids: set[str] = set()
    for _ in range(2):
        async with project() as grove:
            ids.update(record["callId"] for record in grove.audit)
            count = len(grove.audit)
    assert len(ids) == 2 * count

"""What a delegated run keeps for itself is gone with it, in memory and on the disk; what it changed stays."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from runners.scripted import Scripted, answers, made, through
from toolgrove import Config, Grove

pytestmark = pytest.mark.anyio
ADD = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {}}
WORK: tuple[tuple[str, dict[str, Any]], ...] = (
    ("add_child", ADD),
    ("bookmark", {"nodeId": "root", "label": "here"}),
    ("expand_node", {"nodeId": "root"}),
    ("list_bookmarks", {}),
)


def grove(folder: Path) -> Grove:
    everything = {"role": "editor", "tools": ["*"]}
    agents = {"boss": everything, "alice": everything}
    store = {"store": f"sqlite:{folder / 'store.db'}"}
    return Grove(Config.model_validate({"agents": agents, "workspace": store}), runner=Scripted())


def rows(folder: Path) -> dict[str, int]:
    with closing(sqlite3.connect(folder / "store.db")) as store:
        tables = ("view", "expanded", "bookmark", "idempotency")
        return {table: store.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}


async def test_views_and_bookmarks_of_delegated_runs_never_reach_the_disk(tmp_path: Path) -> None:
    async with grove(tmp_path) as first:
        boss = await first.agent("boss")
        for _ in range(3):
            found = answers(await boss.call(*through(["alice"], *WORK)), ["alice"])
            assert [one for one in found if "error" in one] == []
            assert [one["label"] for one in found[-1]["items"]] == ["here"]
    assert rows(tmp_path) == {"view": 0, "expanded": 0, "bookmark": 0, "idempotency": 0}


async def test_after_a_restart_nobody_takes_back_what_a_delegated_run_changed(tmp_path: Path) -> None:
    async with grove(tmp_path) as first:
        alice, boss = await first.agent("alice"), await first.agent("boss")
        mine = (await made(alice, "add_child", ADD))["nodeId"]
        (theirs,) = answers(await boss.call(*through(["alice"], ("add_child", ADD))), ["alice"])
        version = theirs["version"]
    async with grove(tmp_path) as again:
        alice = await again.agent("alice")
        assert (await alice.call("get_node", {"nodeId": theirs["nodeId"]}))["version"] == version
        taken_back = await made(alice, "undo", {})
        more = await made(alice, "undo", {})
        since = await alice.call("changes_since", {"version": version})
    assert taken_back["nodeIds"] == [mine]
    assert more["error"]["reason"] == "nothing_to_undo"
    assert [(one["agent"], one["tool"]) for one in since["items"]] == [("alice", "undo")]


async def test_a_snapshot_that_a_delegated_run_took_is_kept_like_any_other(tmp_path: Path) -> None:
    async with grove(tmp_path) as first:
        await (await first.agent("boss")).call(*through(["alice"], ("snapshot_create", {"label": "theirs"})))
    async with grove(tmp_path) as again:
        listed = await (await again.agent("boss")).call("snapshot_list")
    assert [(one["label"], one["agent"]) for one in listed["items"]] == [("theirs", "alice")]


async def test_a_handle_that_outlives_its_run_keeps_nothing(tmp_path: Path) -> None:
    kept: list[Any] = []

    class Keeping(Scripted):
        async def run(self, agent: Any, task: str) -> dict[str, Any]:
            kept.append(agent)
            return await super().run(agent, task)

    everything = {"role": "editor", "tools": ["*"]}
    config = Config.model_validate({"agents": {"boss": everything, "alice": everything}})
    async with Grove(config, runner=Keeping()) as project:
        await (await project.agent("boss")).call(*through(["alice"], *WORK))
        (late,) = kept
        assert (await made(late, "bookmark", {"nodeId": "root", "label": "late"}))["label"] == "late"
        assert (await late.call("list_bookmarks"))["items"] == []
        assert (await made(late, "undo", {}))["error"]["reason"] == "nothing_to_undo"

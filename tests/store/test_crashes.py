"""Nothing acknowledged is lost, and a repeated request has one effect, however the process ends."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

import toolgrove
from store.crash_child import AGENTS, config, request
from toolgrove import Grove
from warm.command import Process, python

HERE = Path(__file__).parent
ROUNDS = 60
pytestmark = pytest.mark.anyio


class Told:
    """What the children said: requests, and the answers they got."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, str] = {}
        self.open: dict[str, str] = {}

    def hear(self, line: str) -> bool:
        """Note a line; whether it was an answer. The last one may be torn off."""
        words = line.split()
        if words[0] == "ask" and len(words) == 3:
            self.open[words[1]] = words[2]
        if words[0] == "got" and len(words) == 4 and line.endswith("\n"):
            assert self.acknowledged.setdefault(words[2], words[3]) == words[3]
            self.open.pop(words[1], None)
            return True
        return False


def run_and_kill(store: Path | str, number: int, told: Told, pick: random.Random, ending: signal.Signals) -> None:
    source = str(Path(toolgrove.__file__).parents[1])
    with Process(
        python(str(HERE / "crash_child.py"), str(store), str(number)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdin.write(json.dumps(told.open) + "\n")
        child.stdin.flush()
        # It dies in the middle of a group, since answers come several at a time.
        answers, enough = 0, pick.randint(1, 25)
        for line in child.stdout:
            answers += told.hear(line)
            if answers == enough:
                break
        child.send_signal(ending)
        for line in child.stdout:
            told.hear(line)
        errors = child.stderr.read()
    assert answers == enough, errors


@pytest.mark.long
async def test_sixty_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    store, told, pick = tmp_path / "grove.db", Told(), random.Random(1)
    for number in range(ROUNDS):
        run_and_kill(store, number, told, pick, signal.SIGKILL)
    assert len(told.acknowledged) >= ROUNDS
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    await all_of_it_is_there_once(str(store), told, pick)


@pytest.mark.long
async def test_kills_of_a_process_with_a_database_lose_nothing_and_repeat_nothing(database: str) -> None:
    told, pick = Told(), random.Random(3)
    for number in range(ROUNDS // 6):
        run_and_kill(database, number, told, pick, signal.SIGKILL)
    await all_of_it_is_there_once(database, told, pick)


async def all_of_it_is_there_once(store: str, told: Told, pick: random.Random) -> None:
    async with Grove(config(store)) as grove:
        assert (await grove.audit_log.verify()).breach is None
        ann = await grove.agent("ann")
        document = json.loads((await ann.call("export_subtree", {"nodeId": "root"}))["json"])
        nodes = [node for home in document["children"] for node in home.get("children", ())]
        held = Counter(node["payload"]["key"] for node in nodes)
        assert set(held.values()) == {1}
        where = {node["payload"]["key"]: node["nodeId"] for node in nodes}
        assert {key: where.get(key) for key in told.acknowledged} == told.acknowledged
        # What has no answer is there once or not at all; asking again makes it once.
        assert set(where) <= {*told.acknowledged, *told.open.values()}
        for key in [*told.open.values(), *pick.sample(sorted(told.acknowledged), 10)]:
            agent = await grove.agent(key.partition("-")[0])
            again = await request(agent, key)
            assert again["nodeId"] == where.setdefault(key, again["nodeId"])
        counts = [(await ann.call("get_node", {"nodeId": name}))["childrenCount"] for name in AGENTS]
        assert sum(counts) == len(where)


@pytest.mark.long
async def test_a_process_that_is_asked_to_end_loses_nothing_either(tmp_path: Path) -> None:
    store, told, pick = tmp_path / "grove.db", Told(), random.Random(2)
    for number, ending in enumerate((signal.SIGTERM, signal.SIGINT, signal.SIGTERM)):
        run_and_kill(store, number, told, pick, ending)
    async with Grove(config(str(store))) as grove:
        for key, node_id in told.acknowledged.items():
            agent = await grove.agent(key.partition("-")[0])
            assert (await request(agent, key))["nodeId"] == node_id
        assert (await grove.audit_log.verify()).breach is None

"""A call that changes something outside is on record before it leaves; one that a crash cuts off is told."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from apcore import Registry
from pydantic import BaseModel

from faults.kit import Journal, error_of, fake, granted, text_of
from grove_kit import ManualClock, config
from store_kit import Scribe
from toolgrove import Agent, Config, Grove
from toolgrove.store.audit import AuditFile, AuditQuery, JsonLines, Sealed
from toolgrove.store.journal import JournalEntry, MemoryJournal, SqliteJournal
from waiting import eventually
from warm.command import Process, python
from web.held import holding

pytestmark = pytest.mark.anyio
KEPT = {"store": {"store": "sqlite:grove.db"}, "log": {"auditLog": "audit.jsonl"}}
PAY = {"text": "pay"}


class House:
    """A project in a folder, with a server whose tool `hold` changes something and answers when it is told to."""

    def __init__(self, folder: Path, workspace: dict[str, Any], approve: Sequence[str] = (), **more: Any) -> None:
        self.journal = Journal(folder / "journal")
        server = fake(journal=self.journal, changes=["hold"])
        agents = {name: {"role": "editor", "tools": ["*"], "approve": approve} for name in ("a", "b")}
        self._file = folder / "toolgrove.yaml"
        form = {"workspace": workspace, "mcpServers": {"up": server}, "agents": agents, **more}
        self._file.write_text(json.dumps(form))

    @property
    def grove(self) -> Grove:
        return Grove(Config.load(self._file))

    def say(self, *words: str) -> Any:
        """What a command answers in JSON."""
        done = subprocess.run(self._command(*words, "--json"), capture_output=True, text=True, check=False)
        return json.loads(done.stdout)

    async def cut_off(self) -> None:
        """Call the tool in a process of its own, and kill that while the tool works."""
        held = len(self.journal.lines("holds"))
        with self.calling("a", "up_hold", "text=pay") as process:
            await self.journal.wrote("holds", held + 1)
            process.kill()

    def calling(self, *words: str) -> Process:
        """A process that makes one call."""
        command = self._command("call", *words)
        return Process(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _command(self, *words: str) -> list[str]:
        return python("-m", "toolgrove", *words, "--config", str(self._file))


async def records(grove: Grove, tool: str = "up_hold") -> list[dict[str, Any]]:
    """All that are kept of a tool: the process remembers its own, a file those before them as well."""
    file = grove.config.workspace.audit_log
    log = grove.audit_log if file is None else AuditFile(file)
    return (await log.records(AuditQuery(tool=tool))).records


def outcomes(found: Sequence[dict[str, Any]]) -> list[str]:
    return [record["outcome"] for record in found]


async def held_and_released(agent: Agent, house: House, arguments: dict[str, Any] = PAY) -> str:
    """The answer of a call that is let go as soon as it has arrived."""
    answers: list[Any] = []
    before = len(house.journal.lines("holds"))

    async def hold() -> None:
        answers.append(await agent.call("up_hold", arguments))

    async with anyio.create_task_group() as group:
        group.start_soon(hold)
        await house.journal.wrote("holds", before + 1)
        await agent.call("up_release", arguments)
    return text_of(answers[0])


@pytest.mark.parametrize("kept", KEPT)
async def test_a_call_that_a_kill_cut_off_is_unknown_and_its_first_repetition_is_stopped(
    tmp_path: Path, kept: str
) -> None:
    house = House(tmp_path, KEPT[kept])
    await house.cut_off()
    async with house.grove as grove:
        await granted(grove, "up_hold")
        begun, unknown = await records(grove)
        assert outcomes([begun, unknown]) == ["begun", "unknown"]
        assert begun["callId"] == unknown["callId"]
        assert begun["arguments"] == PAY
        assert "It may have run" in unknown["error"]["message"]
    async with house.grove as grove:  # it is closed once, and known after one more restart
        agent = await granted(grove, "up_hold")
        assert outcomes(await records(grove)) == ["begun", "unknown"]
        error = error_of(await agent.call("up_hold", PAY))
        assert (error["code"], error["reason"], error["callId"]) == ("conflict", "outcome_unknown", begun["callId"])
        assert len(house.journal.lines("holds")) == 1
    async with house.grove as grove:  # that its agent was told outlives a restart, too
        agent = await granted(grove, "up_hold")
        assert await held_and_released(agent, house) == "released"
        assert await held_and_released(agent, house) == "released"
        expected = ["begun", "unknown", "failure", "begun", "success", "begun", "success"]
        assert outcomes(await records(grove)) == expected
        assert (await grove.audit_log.verify()).breach is None
    async with house.grove as grove:
        await granted(grove, "up_hold")
        assert outcomes(await records(grove)) == expected


async def test_others_and_other_arguments_are_not_stopped(tmp_path: Path) -> None:
    house = House(tmp_path, KEPT["store"])
    await house.cut_off()
    async with house.grove as grove:
        assert await held_and_released(await granted(grove, "up_hold", "b"), house) == "released"
        agent = await granted(grove, "up_hold")
        assert await held_and_released(agent, house, {"text": "another"}) == "released"
        assert error_of(await agent.call("up_hold", PAY))["reason"] == "outcome_unknown"


async def test_who_is_asked_to_approve_it_again_sees_that_it_may_have_run(tmp_path: Path) -> None:
    house = House(tmp_path, KEPT["store"], approve=["up_hold"])
    asked = house.say("call", "a", "up_hold", "text=pay")["error"]["approvalId"]
    house.say("approvals", "approve", asked)
    await house.cut_off()
    assert house.say("call", "a", "up_hold", "text=pay")["error"]["reason"] == "outcome_unknown"
    (unknown,) = house.say("audit", "list", "--outcome", "unknown")
    again = house.say("call", "a", "up_hold", "text=pay")["error"]
    assert again["reason"] == "approval_required"
    shown = house.say("approvals", "show", again["approvalId"])
    assert shown["earlier"]["callId"] == unknown["callId"]
    told = [one["message"] for one in house.say("doctor", "--no-start")["findings"] if one["area"] == "audit"]
    assert any("audit list --outcome unknown" in one for one in told)


async def test_only_what_changes_something_outside_begins_with_a_record(tmp_path: Path) -> None:
    house = House(tmp_path, {})
    async with house.grove as grove:
        agent = await granted(grove, "up_hold")
        version = (await agent.call("get_node", {"nodeId": "root"}))["version"]
        form = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {}, "versionToken": version}
        assert "error" not in await agent.call("add_child", form)
        assert text_of(await agent.call("up_echo", {"text": "x"})) == "x"
        assert {record["outcome"] for record in grove.audit} == {"success"}
        await held_and_released(agent, house)
        assert outcomes(await records(grove)) == ["begun", "success"]
        assert outcomes(await records(grove, "up_release")) == ["success"]


async def test_an_http_request_that_changes_is_on_record_before_it_is_sent(tmp_path: Path) -> None:
    async with holding() as held:
        house = House(tmp_path, KEPT["store"], httpTools={"order": held.tool(method="POST"), "look": held.tool()})
        async with house.grove as grove:
            asked = error_of(await (await grove.agent("a")).call("order", {"key": "pay"}))
            await grove.approvals.decide(asked["approvalId"], approve=True, by="grace", lasts="8h")
        for tool, key in (("order", "pay"), ("look", "see")):
            with house.calling("a", tool, f"key={key}") as process:
                await eventually(partial(held.arrived.__contains__, key))
                process.kill()
            await eventually(partial(held.abandoned.__contains__, key))
        held.abandoned.clear()
        held.release("pay", "see")
        async with house.grove as grove:
            _, begun, unknown = await records(grove, "order")
            assert outcomes([begun, unknown]) == ["begun", "unknown"]
            assert begun["arguments"] == {"key": "pay"}
            assert await records(grove, "look") == []
            agent = await grove.agent("a")
            error = error_of(await agent.call("order", {"key": "pay"}))
            assert (error["reason"], error["callId"]) == ("outcome_unknown", begun["callId"])
            assert (await agent.call("order", {"key": "pay"}))["body"] == {"key": "pay"}
            assert (await agent.call("look", {"key": "see"}))["body"] == {"key": "see"}
            assert outcomes(await records(grove, "order"))[-2:] == ["begun", "success"]
            assert outcomes(await records(grove, "look")) == ["success"]


class _Nothing(BaseModel):
    """Neither taken nor given."""


class Ordering:
    """A module that says nothing of whether it changes something."""

    description = "Orders something."
    input_schema = output_schema = _Nothing

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {}


async def test_a_module_that_changes_something_begins_with_a_record_as_well() -> None:
    registry = Registry()
    registry.register("order", Ordering())
    async with Grove(config(agents={"a": {"role": "editor", "tools": ["*"]}}), extensions=registry) as grove:
        assert await (await grove.agent("a")).call("order") == {}
        assert outcomes(list(grove.audit)) == ["begun", "success"]


class Full(JsonLines):
    """A log on a disk without room."""

    def write(self, sealed: Sealed) -> None:
        raise OSError("no room")


async def test_what_cannot_be_recorded_does_not_leave(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    servers = {"up": fake(journal=journal, changes=["erase"])}
    project = config(agents={"a": {"role": "editor", "tools": ["*"]}}, mcpServers=servers)
    async with Grove(project, audit_sinks=[Full(tmp_path / "log.jsonl")]) as grove:
        agent = await granted(grove, "up_erase")
        assert error_of(await agent.call("up_erase"))["reason"] == "journal_unavailable"
        assert text_of(await agent.call("up_echo", {"text": "x"})) == "x"
    assert journal.received("tools/call", "erase") == 0


async def test_calls_that_begin_together_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    sync = os.fsync

    def counted(file: int) -> None:
        syncs.append(file)
        sync(file)

    monkeypatch.setattr(os, "fsync", counted)
    scribe = Scribe()
    journal = MemoryJournal(ManualClock(), sinks=[JsonLines(tmp_path / "log.jsonl")])
    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(journal.append, JournalEntry(scribe.record("ann", "pay", "begun", 0), durable=True))
    await journal.close()
    assert 1 <= len(syncs) <= 2
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 50


async def test_of_two_like_calls_that_were_cut_off_together_the_next_is_stopped_once(tmp_path: Path) -> None:
    scribe, request = Scribe(), "the same request"

    def begun() -> JournalEntry:
        return JournalEntry(scribe.record("ann", "pay", "begun", 0)._replace(request=request), durable=True)

    for lives in range(3):
        journal = SqliteJournal(tmp_path / "grove.db", ManualClock())
        await journal.open()
        doubt = journal.unfinished.doubt(request)
        if lives == 0:
            for _ in range(2):
                await journal.append(begun())
        elif lives == 1:
            assert doubt is not None
            again = begun()
            await journal.append(again)
            await journal.append(JournalEntry(again.audit._replace(outcome="success", request=None)))
        else:
            assert doubt is None
        await journal.close()


@pytest.mark.services
async def test_a_replica_that_runs_closes_the_call_of_one_that_was_killed_and_settles_its_approval(
    tmp_path: Path, database: str
) -> None:
    house = House(tmp_path, {"store": database}, approve=["up_hold"])
    async with house.grove as grove:
        agent = await grove.agent("a")
        waiting = error_of(await agent.call("up_hold", PAY))["approvalId"]
        await grove.approvals.decide(waiting, approve=True, by="grace")
        await house.cut_off()

        async def is_settled() -> bool:
            return (await grove.approvals.get(waiting)).state == "unknown"

        async def is_closed() -> bool:
            return (await records(grove))[-1]["outcome"] in ("unknown",)

        await eventually(is_settled)
        await eventually(is_closed)
        assert error_of(await agent.call("up_hold", PAY))["reason"] == "outcome_unknown"

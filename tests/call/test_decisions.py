"""What people decide is in the audit log: who, when and about what, whichever process they decide in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grove_kit import ManualClock, config, hand
from toolgrove import Config, Grove
from toolgrove.config import ConfigFile
from toolgrove.project_state import ProjectState
from toolgrove.reload import record_start, take_change
from toolgrove.store.audit import AuditQuery, Sealed
from toolgrove.store.state import OPERATOR, hashed

pytestmark = pytest.mark.anyio
AGENTS = {"ann": {"role": "editor", "approve": ["remove_*", "add_*"]}}


@pytest.fixture(params=["memory", "sqlite"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Config:
    kept = {"state": str(tmp_path / "state")} if request.param == "sqlite" else {}
    return config(agents=AGENTS, **kept)


async def decisions(grove: Grove) -> list[dict[str, Any]]:
    """The records that are no calls, without what every record has."""
    await grove.recorder.collect()
    found = (await grove.audit_log.records(AuditQuery(limit=1000))).records
    shown = ("kind", "operation", "by", "agent", "targets", "outcome", "details", "timestamp")
    return [{name: record.get(name) for name in shown} for record in found if "kind" in record]


async def test_a_decision_on_an_approval_is_on_record(settings: Config) -> None:
    clock = ManualClock()
    async with Grove(settings, clock=clock) as grove:
        ann = await hand(grove, "ann")
        asked = [await ann.refused("add_child", parentNodeId="root", payloadType=name) for name in ("A", "B", "C")]
        first, second, third = (error["approvalId"] for error in asked)
        await grove.approvals.decide(first, approve=True, by="grace")
        await grove.approvals.decide(first, approve=True, by="grace")  # a double click
        await grove.approvals.decide(second, approve=False, by="grace", reason="not today")
        await grove.approvals.decide(third, approve=True, by="grace", lasts="1h")
        clock.now += 60
        await grove.approvals.revoke(third, by="henry")
        approved, rejected, standing, revoked = await decisions(grove)
        assert approved == {
            "kind": "approval",
            "operation": "approval.approved",
            "by": "grace",
            "agent": "ann",
            "targets": ["add_child"],
            "outcome": "success",
            "details": approved["details"],
            "timestamp": "2027-01-15T08:16:40.000+00:00",
        }
        assert (approved["details"]["approvalId"], approved["details"]["tool"]) == (first, "add_child")
        assert (rejected["operation"], rejected["details"]["reason"]) == ("approval.rejected", "not today")
        assert standing["details"]["for"] == "1h"
        assert (revoked["operation"], revoked["by"]) == ("approval.revoked", "henry")
        assert revoked["timestamp"] == "2027-01-15T08:17:40.000+00:00"
        assert (await grove.audit_log.verify()).breach is None


async def test_pins_accepted_refused_and_forgotten_are_on_record(settings: Config) -> None:
    async with Grove(settings, clock=ManualClock()) as grove:
        grove.pins.pin("wiki", "search", "aaaa" * 16, {"name": "search"})
        grove.pins.saw("wiki", "search", "bbbb" * 16, {"name": "search", "description": "new"})
        grove.pins.accept("wiki", "search", "bbbb" * 16, by="grace")
        grove.pins.saw("wiki", "search", "cccc" * 16, {"name": "search", "description": "newer"})
        grove.pins.refuse("wiki", "search", "cccc" * 16, by="henry")
        grove.pins.forget("wiki", "search", by="henry")
        accepted, refused, forgotten = await decisions(grove)
        assert (refused["operation"], refused["details"]) == ("pin.refused", {"hash": "cccc" * 16})
        assert (accepted["operation"], accepted["by"], accepted["targets"]) == (
            "pin.accepted",
            "grace",
            ["wiki/search"],
        )
        assert accepted["details"] == {"hash": "bbbb" * 16}
        assert (forgotten["operation"], forgotten["by"]) == ("pin.forgotten", "henry")


async def test_tokens_made_and_revoked_are_on_record_and_never_themselves(settings: Config) -> None:
    async with Grove(settings, clock=ManualClock()) as grove:
        token = grove.tokens.issue("ann", by="grace")
        for _ in range(2):  # the second time there is nothing left to revoke
            grove.tokens.revoke(hashed(token), by="henry")
        grove.tokens.issue(OPERATOR, by="toolgrove serve")
        found = await decisions(grove)
        assert [(one["operation"], one["by"], one["agent"]) for one in found] == [
            ("token.made", "grace", "ann"),
            ("token.revoked", "henry", "ann"),
            ("token.made", "toolgrove serve", OPERATOR),
        ]
        assert found[0]["details"] == found[1]["details"]
        assert token not in json.dumps(found)


async def test_what_another_process_decides_is_recorded_here(tmp_path: Path) -> None:
    settings = config(agents=AGENTS, state=str(tmp_path / "state"), workspace={"store": f"sqlite:{tmp_path / 'g.db'}"})
    async with Grove(settings) as grove:
        error = await (await hand(grove, "ann")).refused("add_child", parentNodeId="root", payloadType="A")
        with ProjectState.of(settings) as elsewhere:
            await elsewhere.approvals.decide(error["approvalId"], approve=True, by="grace")
            token = elsewhere.tokens.issue("ann", by="grace")
        assert [one["operation"] for one in await decisions(grove)] == ["approval.approved", "token.made"]
    with ProjectState.of(settings) as meanwhile:  # nobody is there to record it
        meanwhile.tokens.revoke(hashed(token), by="henry")
    async with Grove(settings) as grove:
        found = (await grove.audit_log.records(AuditQuery(tool="token.revoked"))).records
        assert [record["by"] for record in found] == ["henry"]
    async with Grove(settings) as grove:
        assert len(await decisions(grove)) == 3


async def test_a_decision_waits_for_a_log_that_can_take_it(settings: Config) -> None:
    class Disk:
        full = True

        def write(self, sealed: Sealed) -> None:
            if self.full:
                raise OSError(28, "No space left on device")

    disk = Disk()
    async with Grove(settings, audit_sinks=[disk]) as grove:
        grove.tokens.issue("ann", by="grace")
        assert await decisions(grove) == []
        disk.full = False
        assert [one["operation"] for one in await decisions(grove)] == ["token.made"]


async def test_looking_for_decisions_makes_no_state_file(tmp_path: Path) -> None:
    async with Grove(config(state=str(tmp_path / "state"))) as grove:
        await grove.recorder.collect()
    assert not (tmp_path / "state").exists()


async def test_a_configuration_that_is_taken_or_refused_is_on_record(tmp_path: Path) -> None:
    path = tmp_path / "toolgrove.yaml"
    path.write_text("project: one\n")
    file = ConfigFile(path)
    async with Grove(file.config) as grove:
        await record_start(file, grove)
        (started,) = await decisions(grove)
        assert (started["operation"], started["by"]) == ("configuration.taken", "the project file")
        assert started["details"] == {"hash": file.digest, "at": "start"}
        path.write_text("project: another\n")
        assert await take_change(file, grove)
        path.write_text("projekt: wrong\n")
        assert not await take_change(file, grove)
        path.write_text("project: another\n")
        assert not await take_change(file, grove)
        _, taken, refused = await decisions(grove)
        assert (taken["operation"], taken["outcome"]) == ("configuration.taken", "success")
        assert taken["details"] == {"hash": file.digest, "at": "change"}
        assert (refused["operation"], refused["outcome"]) == ("configuration.refused", "refused")
        (record,) = (await grove.audit_log.records(AuditQuery(outcome="refused"))).records
        assert "did you mean 'project'" in record["error"]["message"]


async def test_no_secret_gets_into_a_record_by_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "the-key-of-the-shop-4711")
    async with Grove(config(agents=AGENTS)) as grove:
        grove.secrets.fill("${env:SHOP_KEY}", field="x", user="shop")
        error = await (await hand(grove, "ann")).refused("add_child", parentNodeId="root", payloadType="A")
        await grove.approvals.decide(error["approvalId"], approve=False, by="grace", reason="the-key-of-the-shop-4711!")
        (found,) = await decisions(grove)
        assert found["details"]["reason"] == "[secret SHOP_KEY]!"

"""However the process ends, an approval of a change to the tree is used if and only if the change is there."""

from __future__ import annotations

import json
import logging
import os
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import toolgrove
from store.approval_crash_child import config, request
from toolgrove import Grove
from toolgrove.store.audit import AuditQuery
from toolgrove.store.state import Approval, ApprovalRequest

HERE = Path(__file__).parent
ROUNDS = 12
pytestmark = pytest.mark.anyio


def run_and_kill(folder: Path, number: int, enough: int) -> dict[str, str]:
    """What a child said it had added before it was killed while it used an approval."""
    source = str(Path(toolgrove.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, str(HERE / "approval_crash_child.py"), str(folder), str(number)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    ) as child:
        assert child.stdout is not None
        lines, claims = [], 0
        for line in child.stdout:
            lines.append(line)
            claims += line.startswith("claims")
            if claims == enough:
                break
        child.kill()
        lines += child.stdout
    assert claims == enough
    added = [line.split() for line in lines if line.startswith("added") and line.endswith("\n")]
    return {words[1]: words[2] for words in added}


@pytest.mark.long
async def test_a_kill_leaves_every_approval_used_with_its_change_or_unused_without_it(tmp_path: Path) -> None:
    pick, acknowledged = random.Random(3), dict[str, str]()
    for number in range(ROUNDS):
        acknowledged |= run_and_kill(tmp_path, number, pick.randint(1, 6))
    async with Grove(config(str(tmp_path))) as grove:
        agent = await grove.agent("careful")
        document = json.loads((await agent.call("export_subtree", {"nodeId": "root"}))["json"])
        where = {node["payload"]["key"]: node["nodeId"] for node in document["children"]}
        assert len(where) == len(document["children"])
        assert {key: where.get(key) for key in acknowledged} == acknowledged
        approvals = [one for one in await grove.approvals.list() if one.decided_at is not None]
        of = {str(one.request.arguments["payloadProps"]["key"]): one for one in approvals}
        assert {key for key, one in of.items() if one.state == "used"} == set(where)
        assert {one.state for one in approvals} <= {"used", "approved"}
        for key, one in of.items():
            if one.state == "approved":  # nobody is asked twice
                assert "error" not in await request(agent, key)
        assert (await grove.audit_log.verify()).breach is None
        states = Counter(one.state for one in await grove.approvals.list())
        assert states["used"] == len(of)


async def claimed(grove: Grove, asked: str, request: ApprovalRequest) -> Approval:
    await grove.approvals.decide(asked, approve=True, by="grace")
    found = await grove.approvals.claim(request, "c0-1")
    assert found is not None
    return found


async def abandoned(grove: Grove) -> list[dict[str, Any]]:
    """What the audit log says of approvals that a crash left behind."""
    records = (await grove.audit_log.records(AuditQuery(limit=1000))).records
    return [record for record in records if record["operation"] == "approval.abandoned"]


async def test_an_approval_that_was_claimed_for_nothing_is_good_again_and_that_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Grove(config(str(tmp_path))) as grove:
        asked = (await request(await grove.agent("careful"), "k"))["error"]["approvalId"]
        await claimed(grove, asked, (await grove.approvals.get(asked)).request)
    with caplog.at_level(logging.WARNING, "toolgrove"):
        async with Grove(config(str(tmp_path))) as grove:
            assert (await grove.approvals.get(asked)).state == "approved"
            assert "error" not in await request(await grove.agent("careful"), "k")
            assert (await grove.approvals.get(asked)).state == "used"
    async with Grove(config(str(tmp_path))) as grove:  # it is told once
        (record,) = await abandoned(grove)
        assert (record["kind"], record["by"], record["agent"]) == ("approval", "start-up", "careful")
        told = record["details"]
        assert (told["approvalId"], told["claimedBy"], told["state"]) == (asked, "c0-1", "approved")
        assert (record["chain"], record["runId"]) == (["careful"], (await grove.approvals.get(asked)).request.run_id)
    assert (
        f"Approval {asked} (careful, add_child) was claimed by call c0-1 and not used; it is good again." in caplog.text
    )


async def test_an_approval_whose_change_is_in_the_journal_is_used(tmp_path: Path) -> None:
    async with Grove(config(str(tmp_path))) as grove:
        agent = await grove.agent("careful")
        asked = (await request(agent, "k"))["error"]["approvalId"]
        await grove.approvals.decide(asked, approve=True, by="grace")
        await request(agent, "k")
    with closing(sqlite3.connect(tmp_path / "state.db")) as state:  # the kill came before the state file heard of it
        state.execute("UPDATE approvals SET state = 'claimed'")
        state.commit()
    async with Grove(config(str(tmp_path))) as grove:
        assert (await grove.approvals.get(asked)).state == "used"
        assert await abandoned(grove) == []  # the record of the call is there


async def test_whether_an_approved_call_to_the_outside_ran_is_unknown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sent = ApprovalRequest(
        agent="careful",
        chain=("careful",),
        tool="shop_order",
        arguments={},
        arguments_hash="a",
        definition={},
        definition_hash="d",
        rule="HTTP POST",
    )
    async with Grove(config(str(tmp_path))) as grove:
        asked = (await grove.approvals.request(sent)).id
        await claimed(grove, asked, sent)
    with caplog.at_level(logging.WARNING, "toolgrove"):
        async with Grove(config(str(tmp_path))) as grove:
            assert (await grove.approvals.get(asked)).state == "unknown"
            assert await grove.approvals.claim(sent, "c0-2") is None
            assert (await grove.approvals.request(sent)).id != asked
            (record,) = await abandoned(grove)
            assert (record["targets"], record["details"]["state"]) == (["shop_order"], "unknown")
    assert (
        f"Approval {asked} (careful, shop_order) was claimed by call c0-1; whether that ran is not known."
        in caplog.text
    )


@pytest.mark.parametrize(("later", "state"), [(0, "claimed"), (1, "approved")])
async def test_a_claim_of_a_process_that_lives_is_left_alone_and_not_one_of_its_number(
    tmp_path: Path, later: int, state: str
) -> None:
    async with Grove(config(str(tmp_path))) as grove:
        asked = (await request(await grove.agent("careful"), "k"))["error"]["approvalId"]
        await claimed(grove, asked, (await grove.approvals.get(asked)).request)
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            began = int(Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19])
            with closing(sqlite3.connect(tmp_path / "state.db")) as kept:
                kept.execute("UPDATE approvals SET process = ?", ((began - later) << 22 | other.pid,))
                kept.commit()
            async with Grove(config(str(tmp_path))) as grove:
                assert (await grove.approvals.get(asked)).state == state
        finally:
            other.kill()


async def test_a_claim_from_a_system_that_does_not_tell_when_a_process_began_goes_by_its_number(tmp_path: Path) -> None:
    async with Grove(config(str(tmp_path))) as grove:
        asked = (await request(await grove.agent("careful"), "k"))["error"]["approvalId"]
        await claimed(grove, asked, (await grove.approvals.get(asked)).request)
    with closing(sqlite3.connect(tmp_path / "state.db")) as state:
        state.execute("UPDATE approvals SET process = ?", (os.getppid(),))
        state.commit()
    async with Grove(config(str(tmp_path))) as grove:
        assert (await grove.approvals.get(asked)).state == "claimed"

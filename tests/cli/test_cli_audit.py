"""The audit log on the command line: reading, proving and exporting it."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from pathlib import Path
from zlib import crc32

import pytest

from cli_kit import Project, Toolgrove
from toolgrove.cli import main
from toolgrove.store.audit import verify

AGENTS = {"editor": {"role": "editor", "tools": ["*"]}, "reader": {"tools": ["get_node"]}}


@pytest.fixture
def log(toolgrove: Toolgrove, project: Project, tmp_path: Path) -> Path:
    """Four calls: two that went well, one on a node that is not there, one of a tool that is not granted."""
    import_module("cryptography.hazmat.primitives.asymmetric.ed25519")  # else the first record is signed behind itself
    project(workspace={"auditLog": "audit.jsonl"}, agents=AGENTS)
    calls(toolgrove)
    return tmp_path / "audit.jsonl"


def calls(toolgrove: Toolgrove) -> None:
    toolgrove("call", "editor", "get_node", "nodeId=root")
    toolgrove("call", "reader", "get_node", "nodeId=root")
    toolgrove("call", "reader", "get_node", "nodeId==cmd()")
    toolgrove("call", "reader", "remove_node", "nodeId=root")


def numbers(toolgrove: Toolgrove, *filters: str) -> list[int]:
    return [record["number"] for record in toolgrove("audit", "list", *filters, "--json").json]


def test_the_latest_calls_are_listed_newest_last(toolgrove: Toolgrove, log: Path) -> None:
    said = toolgrove("audit")
    assert said.code == 0
    heading, *rows = said.out.splitlines()
    assert heading.split() == ["NUMBER", "TIME", "AGENT", "TOOL", "OUTCOME", "MS", "ERROR"]
    assert [row.split()[0] for row in rows] == ["1", "2", "3", "4"]
    assert rows[3].endswith("not_found")
    assert toolgrove("audit", "list").out == said.out


def test_one_record_is_shown_whole(toolgrove: Toolgrove, log: Path) -> None:
    shown = toolgrove("audit", "show", "3")
    assert (shown.code, '"nodeId": "=cmd()"' in shown.out) == (0, True)
    assert toolgrove("audit", "show", "1", "--json").json["result"]["nodeId"] == "root"
    missing = toolgrove("audit", "show", "5")
    assert (missing.code, "there is no record 5" in missing.err) == (1, True)


def test_filters_hold_together(toolgrove: Toolgrove, log: Path) -> None:
    assert numbers(toolgrove, "--agent", "reader") == [2, 3, 4]
    assert numbers(toolgrove, "--agent", "reader", "--outcome", "success") == [2]
    assert numbers(toolgrove, "--tool", "remove_node") == [4]
    assert numbers(toolgrove, "--limit", "2") == [3, 4]
    assert numbers(toolgrove, "--kind", "call") == [1, 2, 3, 4]
    assert numbers(toolgrove, "--kind", "approval") == []
    assert numbers(toolgrove, "--since", "1h") == [1, 2, 3, 4]
    assert numbers(toolgrove, "--since", "2999-01-31") == []
    assert toolgrove("audit", "list", "--agent", "nobody").out == "No call is recorded that fits.\n"


def test_a_whole_log_is_told_so(toolgrove: Toolgrove, log: Path) -> None:
    assert (
        toolgrove("audit", "verify").out == "Verified: records 1 to 4; none has been changed, removed or reordered.\n"
    )
    assert toolgrove("audit", "verify", "--json").json == {
        "whole": True,
        "breach": None,
        "first": 1,
        "last": 4,
        "removed": 0,
        "sealedFrom": 1,
        "sealedTo": 4,
        "sealed": True,
        "breaks": [],
        "unchecked": [],
        "tree": None,
    }


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (
            lambda lines: [lines[0], lines[1].replace("reader", "editor"), *lines[2:]],
            "2nd record: the record was altered",
        ),
        (lambda lines: [lines[0], *lines[2:]], "2nd record: a record before it is missing or out of order"),
        (lambda lines: [lines[0], lines[2], lines[1]], "2nd record: a record before it is missing or out of order"),
        (lambda lines: lines[1:], "1st record: records before it are missing"),
        (lambda lines: lines[:3], "3rd record: records after it are missing: there was a record 4"),
        (lambda lines: [], "1st record: records after it are missing: there was a record 4"),
        (lambda lines: [*lines[:3], lines[3][:40] + "\n"], "4th record: the record was altered"),
    ],
)
def test_the_first_breach_is_told(
    toolgrove: Toolgrove, log: Path, damage: Callable[[list[str]], list[str]], told: str
) -> None:
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(damage(lines)))
    said = toolgrove("audit", "verify")
    assert (said.code, said.out) == (1, f"The log does not hold at its {told}.\n")
    assert toolgrove("audit").code == 0  # what can be read is still shown


def test_an_anchor_kept_elsewhere_proves_that_nothing_was_taken_back(
    toolgrove: Toolgrove, log: Path, tmp_path: Path
) -> None:
    anchor = toolgrove("audit", "anchor").out.strip()
    assert toolgrove("audit", "anchor", "--json").json == {"anchor": anchor}
    older = log.read_text()
    anchors = tmp_path / "anchors.txt"
    calls(toolgrove)
    anchors.write_text(f"{anchor}\n{toolgrove('audit', 'anchor').out}")
    assert toolgrove("audit", "verify", "--anchor", str(anchors), "--anchor", anchor).code == 0
    log.write_text(older)
    (tmp_path / ".toolgrove" / "audit.jsonl.head").unlink()  # as somebody would who may write all of it
    assert toolgrove("audit", "verify").code == 0
    said = toolgrove("audit", "verify", "--anchor", str(anchors))
    assert (said.code, "records after it are missing: there was a record 8" in said.out) == (1, True)


def test_a_store_that_is_gone_is_told_though_its_copy_is_whole(
    toolgrove: Toolgrove, project: Project, tmp_path: Path
) -> None:
    project(workspace={"store": "sqlite:grove.db", "auditLog": "audit.jsonl"}, agents=AGENTS)
    calls(toolgrove)
    anchor = toolgrove("audit", "anchor").out.strip()
    for part in tmp_path.glob("grove.db*"):
        part.unlink()
    said = toolgrove("audit", "verify")
    assert (said.code, "grove.db is gone; its copy has records up to 4" in said.out) == (1, True)
    assert toolgrove("audit", "verify", "--json").json["whole"] is False
    assert numbers(toolgrove) == [1, 2, 3, 4]
    (tmp_path / "audit.jsonl").unlink()
    (tmp_path / ".toolgrove" / "grove.db.head").unlink()
    said = toolgrove("audit", "verify", "--anchor", anchor)
    assert (said.code, "is gone: it held audit records up to 4" in said.err) == (1, True)


@pytest.mark.parametrize("anchor", ["12", "12:abc", "no/such/file"])
def test_what_is_no_anchor_is_told_so(toolgrove: Toolgrove, log: Path, anchor: str) -> None:
    said = toolgrove("audit", "verify", "--anchor", anchor)
    assert (said.code, said.out, "anchor" in said.err) == (1, "", True)


def test_what_could_not_be_checked_and_what_was_put_back_is_told(
    toolgrove: Toolgrove, log: Path, tmp_path: Path
) -> None:
    key = tmp_path / ".toolgrove" / "audit.key"
    content = key.read_text()
    key.unlink()
    said = toolgrove("audit", "verify")
    assert (said.code, "Not proved" in said.out, "Not checked: the seals" in said.out) == (3, True, True)
    assert toolgrove("audit", "verify", "--json").json["whole"] is None
    key.write_text(content)
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:2]))
    told = [one for one in toolgrove("doctor", "--no-start", "--json").json["findings"] if one["area"] == "audit"]
    assert [(one["level"], "ends at audit record 2, and once had 4" in one["message"]) for one in told] == [
        ("warning", False),
        ("error", True),
    ]
    assert "chmod 600" in told[0]["message"]
    calls(toolgrove)
    said = toolgrove("audit", "verify")
    assert said.code == 0
    assert "Record 5 marks a break: it was put back to record 2, and had held records up to 4." in said.out
    told = [one for one in toolgrove("doctor", "--no-start", "--json").json["findings"] if one["area"] == "audit"]
    assert "audit record 5 marks a break" in told[-1]["message"]


def test_an_export_can_be_verified_again(toolgrove: Toolgrove, log: Path) -> None:
    said = toolgrove("audit", "export")
    *records, key = said.out.splitlines()
    assert records == log.read_text().splitlines()
    assert json.loads(key) == {"publicKey": toolgrove("audit", "key").out.strip()}
    assert verify(said.out.splitlines()) is None
    assert len(toolgrove("audit", "export", "--limit", "3").out.splitlines()) == 3 + 1


def test_a_spreadsheet_reads_every_cell_as_text(toolgrove: Toolgrove, log: Path) -> None:
    said = toolgrove("audit", "export", "--format", "csv", "--agent", "reader")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert [row["operation"] for row in rows] == ["get_node", "get_node", "remove_node"]
    assert rows[1]["targets"] == "'=cmd()"
    assert rows[2]["errorCode"] == "not_found"


@pytest.mark.usefixtures("log")
def test_nothing_hides_in_what_the_audit_log_shows(toolgrove: Toolgrove) -> None:
    toolgrove("call", "reader", "\u202edom_tpircs\x1b[2K\nx", "nodeId=root")
    for words in (("audit",), ("audit", "--json"), ("audit", "export", "--format", "csv")):
        shown = toolgrove(*words).out
        assert r"\u202edom_tpircs\u001b[2K" in shown, words
        assert not {"\u202e", "\x1b"} & set(shown), words


def test_a_long_log_is_exported_page_by_page_without_gap(toolgrove: Toolgrove, log: Path) -> None:
    line = log.read_text().splitlines()[0]
    many = [line.replace('"number":1,', f'"number":{at},') for at in range(1, 2501)]
    log.write_text("\n".join(many) + "\n")
    exported = [json.loads(each)["number"] for each in toolgrove("audit", "export").out.splitlines()[:-1]]
    assert exported == list(range(1, 2501))
    rows = toolgrove("audit", "export", "--format", "csv", "--limit", "1500").out.splitlines()
    assert (len(rows), rows[0].startswith("number,")) == (1501, True)


def test_the_records_of_a_store_are_read_in_the_same_way(
    toolgrove: Toolgrove, project: Project, tmp_path: Path
) -> None:
    project(workspace={"store": "sqlite:grove.db"}, agents=AGENTS)
    assert "is not there yet" in toolgrove("audit").err
    calls(toolgrove)
    assert numbers(toolgrove, "--agent", "reader") == [2, 3, 4]
    assert (
        toolgrove("audit", "verify").out == "Verified: records 1 to 4; none has been changed, removed or reordered.\n"
    )
    assert verify(toolgrove("audit", "export").out.splitlines()) is None
    with closing(sqlite3.connect(tmp_path / "grove.db")) as connection, connection:
        connection.execute("DELETE FROM audit WHERE number = 4")
    said = toolgrove("audit", "verify")
    assert (said.code, "records after it are missing" in said.out) == (1, True)


def test_a_project_without_a_log_is_told_how_to_keep_one(toolgrove: Toolgrove, project: Project) -> None:
    project(agents=AGENTS)
    said = toolgrove("audit")
    assert (said.code, said.out) == (1, "")
    assert "workspace.auditLog" in said.err
    project(workspace={"auditLog": "audit.jsonl"}, agents=AGENTS)
    assert "is not there yet" in toolgrove("audit", "verify").err


@pytest.mark.parametrize("words", [("--since", "yesterday"), ("--limit", "0"), ("--outcome", "lost")])
def test_a_filter_that_cannot_be_is_a_usage_error(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["audit", "list", *words])
    assert caught.value.code == 2
    assert "usage: toolgrove audit list" in capsys.readouterr().err


def test_an_altered_record_is_listed_all_the_same(toolgrove: Toolgrove, log: Path) -> None:
    record = {"number": 99, "timestamp": "never", "agent": "a", "operation": "o", "outcome": "?", "error": "no object"}
    log.write_text(json.dumps(record) + "\n")
    said = toolgrove("audit")
    assert (said.code, said.out.splitlines()[1].split()) == (0, ["99", "never", "a", "o", "?"])


def test_a_tree_that_its_journal_does_not_lead_to_is_named(
    toolgrove: Toolgrove, project: Project, tmp_path: Path
) -> None:
    project(workspace={"store": "sqlite:grove.db"}, agents=AGENTS)
    for _ in range(2):
        version = json.loads(toolgrove("call", "editor", "get_node", "nodeId=root", "--json").out)["version"]
        props = ("parentNodeId=root", "payloadType=T", "payloadProps={}", f"versionToken={version}")
        assert toolgrove("call", "editor", "add_child", *props).code == 0
    whole = toolgrove("audit", "verify", "--deep")
    assert (whole.code, "The stored nodes fit the journal: 2 changes replayed." in whole.out) == (0, True), whole
    with closing(sqlite3.connect(tmp_path / "grove.db")) as connection, connection:
        body = '["n2","root",7,"T",{"forged":true},[],null]'
        connection.execute("UPDATE node SET body = ?, crc = ? WHERE id = 'n2'", (body, crc32(body.encode())))
    assert toolgrove("audit", "verify").code == 0
    broken = toolgrove("audit", "verify", "--deep")
    assert broken.out.startswith("Verified: records 1 to 4;")
    assert (broken.code, "The tree does not fit: node n2: is not as" in broken.out) == (1, True), broken
    told = toolgrove("audit", "verify", "--deep", "--json").json
    assert (told["whole"], told["breach"], told["tree"]["whole"]) == (False, None, False)
    assert [(one["what"], one["name"]) for one in told["tree"]["differs"]] == [("node", "n2")]


def test_a_tree_in_memory_is_not_proved(toolgrove: Toolgrove, log: Path) -> None:
    said = toolgrove("audit", "verify", "--deep")
    assert (said.code, "Not checked: the tree: it is in memory alone" in said.out) == (3, True), said
    said = toolgrove("audit", "verify", "--deep", str(log))
    assert (said.code, "leave out the name of the log" in said.err) == (1, True), said

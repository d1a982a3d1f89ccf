"""What the record of a call holds: its arguments and its result, scrubbed, bounded and provable."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove_kit import ManualClock, config, hand, recording
from toolgrove import Config, Grove
from toolgrove.call import Chain
from toolgrove.call.audit import AuditStep
from toolgrove.call.scrub import ScrubStep
from toolgrove.call.sensitive import MARK, Sensitive
from toolgrove.call.validate import ValidateStep
from toolgrove.config import ConfigError
from toolgrove.events import Listeners
from toolgrove.pool.secrets import Secrets
from toolgrove.store.audit import AuditFile, AuditQuery, verify
from toolgrove.store.journal import MemoryJournal
from toolgrove.types import Annotations, Call, Caller, Result, Tool, ToolSpec

pytestmark = pytest.mark.anyio
ADD = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {"note": "hello"}}
KEY = "the-key-of-the-shop-4711"


class Echo:
    """A foreign source that answers what it was given, or fails with it."""

    name = "echo"

    def __init__(self, answer: Result | None = None) -> None:
        self.answer = answer

    async def call(self, call: Call) -> Result:
        return {"echo": call.arguments} if self.answer is None else self.answer


async def recorded(
    arguments: Any,
    schema: Mapping[str, Any] | None = None,
    *,
    answer: Result | None = None,
    secrets: Secrets | None = None,
) -> dict[str, Any]:
    """The record of one call through the gate."""
    clock, secrets = ManualClock(), secrets or Secrets({})
    journal = MemoryJournal(clock)
    steps = (AuditStep(journal, clock, Listeners(), recording(secrets)), ValidateStep(), ScrubStep(secrets))
    source = Echo(answer)
    spec = ToolSpec(
        name="echo",
        description="",
        input_schema=schema or {},
        output_schema={},
        annotations=Annotations(),
        source="echo",
    )
    tool = Tool(spec=spec, source=source, mutates=False, kind="mcp")
    caller = Caller(agent="a", session="a", role="editor")
    await Chain(steps, source.call)(Call(id="c1", name="echo", tool=tool, arguments=arguments, caller=caller))
    assert (await journal.verify()).breach is None
    (record,) = journal.audit
    return record


async def test_a_record_holds_what_was_given_and_what_came_back(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    settings = config(workspace={"store": f"sqlite:{tmp_path / 'grove.db'}", "auditLog": str(log)})
    async with Grove(settings) as grove:
        editor = await hand(grove)
        added = await editor.ok("add_child", **ADD)
        await editor.refused("get_node", nodeId="nowhere")
        (record,) = (await grove.audit_log.records(AuditQuery(tool="add_child"))).records
        assert {**record["arguments"], "versionToken": None} == {**ADD, "versionToken": None}
        assert record["result"] == added
        (failed,) = (await grove.audit_log.records(AuditQuery(outcome="failure"))).records
        assert failed["arguments"] == {"nodeId": "nowhere"}
        assert "result" not in failed
        assert (await grove.audit_log.verify()).breach is None
        assert [one["hash"] for one in grove.audit if one["operation"] == "add_child"] == [record["hash"]]
        assert next(one for one in grove.audit if one["operation"] == "add_child") == record
    copy = AuditFile(log)
    assert (await copy.verify()).breach is None
    assert (await copy.records(AuditQuery(tool="add_child"))).records == [record]


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_an_altered_body_is_found(tmp_path: Path, store: str) -> None:
    log, path = tmp_path / "audit.jsonl", tmp_path / "grove.db"
    settings = config(workspace={"store": "memory" if store == "memory" else f"sqlite:{path}", "auditLog": str(log)})
    async with Grove(settings) as grove:
        await (await hand(grove)).ok("add_child", **ADD)
        assert (await grove.audit_log.verify()).breach is None
        if store == "sqlite":
            for change in ('result = \'{"nodeId":"n7"}\'', "arguments = '{}'", "arguments = NULL"):
                with closing(sqlite3.connect(path)) as other, other:
                    before = other.execute("SELECT arguments, result FROM audit_body WHERE number = 2").fetchone()
                    other.execute(f"UPDATE audit_body SET {change} WHERE number = 2")
                assert (await grove.audit_log.verify()).breach is not None, change
                with closing(sqlite3.connect(path)) as other, other:
                    other.execute("UPDATE audit_body SET arguments = ?, result = ? WHERE number = 2", before)
            assert (await grove.audit_log.verify()).breach is None
    lines = log.read_text().splitlines()
    assert verify(lines) is None
    found = verify([lines[0], lines[1].replace("hello", "howdy")])
    assert found is not None
    assert found.number == 1


async def test_bodies_fill_no_more_than_they_may_and_the_records_stay(tmp_path: Path) -> None:
    store = {"store": f"sqlite:{tmp_path / 'grove.db'}"}
    settings = config(workspace=store, recordBytes=20_000)
    async with Grove(settings) as grove:
        editor = await hand(grove)
        for at in range(40):
            await editor.ok(
                "add_child", parentNodeId="root", payloadType="T", payloadProps={"text": "x" * 1_000, "at": at}
            )
        records = (await grove.audit_log.records(AuditQuery(tool="add_child"))).records
        assert [record["operation"] for record in records] == ["add_child"] * 40
        kept = ["arguments" in record for record in records]
        assert 5 < sum(kept) < 20
        assert kept == sorted(kept)
        assert (await grove.audit_log.verify()).breach is None
        with closing(sqlite3.connect(tmp_path / "grove.db")) as other:
            assert (
                other.execute("SELECT sum(length(arguments) + length(result)) FROM audit_body").fetchone()[0] <= 20_000
            )
    async with Grove(config(workspace=store, recordBytes=0)) as grove:
        await (await hand(grove)).ok("get_node", nodeId="root")
        assert (await grove.audit_log.verify()).breach is None
        assert not any("arguments" in one for one in (await grove.audit_log.records(AuditQuery(limit=100))).records)


async def test_memory_keeps_bodies_within_the_same_bound() -> None:
    async with Grove(config(recordBytes=3_000)) as grove:
        editor = await hand(grove)
        for _ in range(10):
            await editor.ok("add_child", parentNodeId="root", payloadType="T", payloadProps={"text": "x" * 1_000})
        kept = ["arguments" in record for record in grove.audit]
        assert (len(kept), kept == sorted(kept), 0 < sum(kept) < 5) == (20, True, True)


async def test_a_body_removed_from_the_middle_is_found_and_room_made_is_not(tmp_path: Path) -> None:
    path = tmp_path / "grove.db"
    async with Grove(config(workspace={"store": f"sqlite:{path}"})) as grove:
        for _ in range(4):
            await (await hand(grove)).ok("get_node", nodeId="root")
        assert (await grove.audit_log.verify()).breach is None
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("DELETE FROM audit_body WHERE number = 1")
        assert (await grove.audit_log.verify()).breach is None
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("DELETE FROM audit_body WHERE number = 3")
        found = (await grove.audit_log.verify()).breach
        assert found is not None
        assert found.number == 2


async def test_a_large_body_is_cut_and_says_so() -> None:
    record = await recorded({"text": "long " * 10_000})
    cut = record["arguments"]
    assert (cut["cut"], cut["bytes"], len(cut["text"])) == (True, 50_011, 16 * 1024)
    assert cut["text"].startswith('{"text":"long long')
    assert record["result"]["cut"] is True
    assert len(json.dumps(record)) < 40_000


async def test_a_page_of_large_records_ends_early_and_the_next_goes_on(tmp_path: Path) -> None:
    settings = config(workspace={"auditLog": str(tmp_path / "audit.jsonl")}, recordBodyBytes=1024**2)
    async with Grove(settings) as grove:
        reader = await hand(grove, "reader")
        for at in range(12):
            await reader.refused("get_node", nodeId=f"{at}" + "x" * 1_000_000)
        for log in (grove.audit_log, AuditFile(tmp_path / "audit.jsonl")):
            first = await log.records(AuditQuery(limit=100))
            assert 0 < len(first.lines) < 12
            rest = await log.records(AuditQuery(limit=100, after=first.next or 0))
            assert (len(first.lines) + len(rest.lines), rest.next) == (12, None)


async def test_no_secret_is_in_a_body_not_even_the_half_that_a_cut_leaves() -> None:
    secrets = Secrets({}, environ={"KEY": KEY})
    secrets.fill("${env:KEY}", field="env.KEY", user="echo")
    whole = await recorded({"note": f"use {KEY}", KEY: 1}, secrets=secrets)
    assert whole["arguments"] == {"note": "use [secret KEY]", "[secret KEY]": 1}
    assert whole["result"] == {"echo": whole["arguments"]}
    for room in range(16_000, 16_400, 3):
        record = await recorded({"a": "x" * room + KEY + "y" * 2_000}, secrets=secrets, answer={})
        assert KEY[:12] not in json.dumps(record), room


SCHEMAS: dict[str, Any] = {
    "x-sensitive": {"properties": {"pin": {"x-sensitive": True}}},
    "writeOnly": {"properties": {"pin": {"type": "string", "writeOnly": True}}},
    "password": {"properties": {"pin": {"type": "string", "format": "password"}}},
    "items": {"properties": {"pin": {"type": "array", "items": {"format": "password"}}}},
    "definition": {"properties": {"pin": {"$ref": "#/$defs/Pin"}}, "$defs": {"Pin": {"writeOnly": True}}},
    "definition of another": {
        "properties": {"pin": {"allOf": [{"$ref": "#/$defs/A"}]}},
        "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/B"}]}, "B": {"format": "password"}},
    },
    "another property": {"properties": {"pin": {"$ref": "#/properties/code"}, "code": {"writeOnly": True}}},
    "untraced": {"properties": {"pin": {"$ref": "#hidden"}}, "$defs": {"X": {"$anchor": "hidden", "writeOnly": True}}},
    "pattern": {"patternProperties": {"^p": {"writeOnly": True}}},
    "additional": {"additionalProperties": {"format": "password"}},
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: {"deep": [{"er": value}]}])
async def test_what_a_schema_marks_as_sensitive_is_in_no_record(schema: dict[str, Any], wrap: Any) -> None:
    outer = schema if wrap("") == "" else {"properties": {"deep": {"items": {"properties": {"er": schema}}}}}
    if "$defs" in schema or "another" in str(schema) or "#/properties" in str(schema):
        outer = {**outer, **{key: value for key, value in schema.items() if key in ("$defs", "properties")}} | {
            "properties": {**schema["properties"], **outer["properties"]}
        }
    record = await recorded(
        wrap({"pin": ["hunter2 is it"]} if "items" in str(schema) else {"pin": "hunter2 is it"}), outer
    )
    assert record["outcome"] == "success"
    assert "hunter2" not in json.dumps(record)
    assert MARK in json.dumps(record["arguments"])


async def test_a_failed_validation_does_not_tell_what_is_sensitive() -> None:
    schema = {"properties": {"pin": {"type": "string", "writeOnly": True}, "note": {"type": "string"}}}
    record = await recorded({"pin": 987, "note": "hello"}, schema)
    assert (record["outcome"], record["error"]["path"]) == ("failure", "pin")
    assert "987" not in json.dumps({**record, "hash": "", "argumentsHash": ""})
    assert record["arguments"] == {"pin": MARK, "note": "hello"}


def test_a_schema_without_marks_hides_nothing() -> None:
    assert not Sensitive(
        {"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#other"}, "format": {"enum": ["password"]}}}
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(
    arguments=st.dictionaries(st.text(max_size=5), JSON, max_size=4),
    answer=st.dictionaries(st.text(), JSON, max_size=3),
)
async def test_whatever_is_given_and_answered_the_line_is_plain_json_and_verifies(
    arguments: dict[str, Any], answer: dict[str, Any]
) -> None:
    record = await recorded(arguments, answer=answer)
    assert record["outcome"] in ("success", "failure")
    json.dumps(record, allow_nan=False)


async def test_what_is_recorded_is_decided_by_agent_and_tool() -> None:
    settings = config(
        agents={
            "ann": {"role": "editor"},
            "bob": {"record": "none"},
            "cid": {"record": {"tools": {"get_*": "full", "get_node": "arguments"}}},
        },
        record={"default": "arguments", "tools": {"list_*": "none"}},
    )
    async with Grove(settings) as grove:
        for agent in ("ann", "bob", "cid"):
            one = await hand(grove, agent)
            for tool, arguments in (
                ("get_node", {"nodeId": "root"}),
                ("get_subtree", {"nodeId": "root"}),
                ("list_bookmarks", {}),
            ):
                await one.ok(tool, **arguments)
        kept = {
            (record["agent"], record["operation"]): ("arguments" in record, "result" in record)
            for record in grove.audit
        }
        assert kept == {
            ("ann", "get_node"): (True, False),
            ("ann", "get_subtree"): (True, False),
            ("ann", "list_bookmarks"): (False, False),
            ("bob", "get_node"): (False, False),
            ("bob", "get_subtree"): (False, False),
            ("bob", "list_bookmarks"): (False, False),
            ("cid", "get_node"): (True, False),
            ("cid", "get_subtree"): (True, True),
            ("cid", "list_bookmarks"): (False, False),
        }


def test_a_misspelt_policy_is_told_where_it_stands(tmp_path: Path) -> None:
    for text, told in (
        ("record: all", "record"),
        ("record: {tools: {a: most}}", "record.tools.a"),
        ("record: {tool: {}}", "tools"),
    ):
        with pytest.raises(ConfigError, match=told):
            Config.parse(text, tmp_path / "toolgrove.yaml")


async def test_calls_that_the_rate_limit_refuses_push_no_bodies_out() -> None:
    async with Grove(config(agents={"ann": {"rateLimit": "1/minute"}}), clock=ManualClock()) as grove:
        ann = await hand(grove, "ann")
        await ann.ok("get_node", nodeId="root")
        await ann.refused("get_node", nodeId="root")
        assert ["arguments" in record for record in grove.audit] == [True, False]


LONG = "x" * 2_000_000


async def test_no_name_fills_the_log_or_the_answer() -> None:
    async with Grove(config()) as grove:
        editor = await hand(grove)
        answers = [
            await editor.agent.call(LONG),
            await editor.agent.call("get_node", {"nodeId": LONG}),
            await editor.agent.call("add_child", {**ADD, "payloadType": LONG, "versionToken": LONG}),
            await editor.agent.call("get_node", {LONG: 1}),
        ]
        answers += [event async for event in editor.agent.run([{"tool": LONG}])]
        for answer in answers:
            assert len(json.dumps(answer)) < 8_000, str(answer)[:200]
        for record in grove.audit:
            bodies = {"arguments", "result"}
            for name, value in record.items():
                assert len(json.dumps(value)) < 5_000 or name in bodies, name
            assert len(record["operation"]) <= 200
            assert len(record.get("error", {}).get("message", "")) <= 2_048
            assert all(
                len(str(value)) <= 200 for key, value in record["error"].items() if key not in ("message", "hint")
            )
        assert (await grove.audit_log.verify()).breach is None


async def test_a_store_from_before_goes_on_with_bodies(tmp_path: Path) -> None:
    path = tmp_path / "grove.db"
    settings = config(workspace={"store": f"sqlite:{path}"})
    async with Grove(settings) as grove:
        await (await hand(grove)).ok("get_node", nodeId="root")
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("DROP TABLE audit_body")
        other.execute("DROP TABLE unfinished")
        for (index,) in other.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql NOT NULL"
        ).fetchall():
            other.execute(f"DROP INDEX {index}")
        other.execute("PRAGMA user_version = 1")
    async with Grove(settings) as grove:
        await (await hand(grove)).ok("get_node", nodeId="root")
        first, second = (await grove.audit_log.records(AuditQuery())).records
        assert ("arguments" in first, second["arguments"]) == (False, {"nodeId": "root"})
        assert (await grove.audit_log.verify()).breach is None

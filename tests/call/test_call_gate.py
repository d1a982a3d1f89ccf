"""The gate around a call: its order, its single effect, its single record."""

from __future__ import annotations

import hashlib
import json
import resource
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from grove_kit import ManualClock, config, hand, recording, sample
from toolgrove import Grove
from toolgrove.call import Chain
from toolgrove.call.audit import AuditStep
from toolgrove.call.idempotency import IdempotencyStep
from toolgrove.call.role import role_step
from toolgrove.call.validate import ValidateStep
from toolgrove.events import Event, Listeners, ToolFailed, ToolSucceeded, TreeChanged
from toolgrove.store.audit import AuditFile, AuditQuery, Sealed, verify
from toolgrove.store.journal import KeyLimits, MemoryJournal
from toolgrove.types import Annotations, Call, Caller, Result, Tool, ToolSpec

pytestmark = pytest.mark.anyio
ADD = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {}}


class SlowSource:
    """A source that is no tree: it waits until told, and counts its effects."""

    name = "slow"

    def __init__(self) -> None:
        self.go = anyio.Event()
        self.effects = 0
        self.failures = 0

    def tools(self) -> tuple[Tool, ...]:
        schema = {"type": "object", "properties": {"x": {"type": "integer"}, "idempotencyKey": {"type": "string"}}}
        spec = ToolSpec(
            name="slow",
            description="Waits.",
            input_schema=schema,
            output_schema={},
            annotations=Annotations(),
            source="slow",
        )
        return (Tool(spec=spec, source=self, mutates=True),)

    async def call(self, call: Call) -> Result:
        await self.go.wait()
        if self.failures:
            self.failures -= 1
            raise RuntimeError("sk-live-secret in /srv/app/x.py")
        self.effects += 1
        return {"effect": self.effects}


class Bench:
    """A chain over a foreign source."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.journal = MemoryJournal(self.clock, limits=KeyLimits(per_agent=3, lifetime=60))
        self.source = SlowSource()
        self.events: list[Event] = []
        listeners = Listeners()
        listeners.add(self.events.append)
        steps = (
            AuditStep(self.journal, self.clock, listeners, recording()),
            role_step,
            ValidateStep(),
            IdempotencyStep(self.journal),
        )
        self.chain = Chain(steps, self.source.call)
        self.count = 0

    async def call(self, agent: str = "a", **arguments: Any) -> Result:
        self.count += 1
        caller = Caller(agent=agent, session=agent, role="editor")
        tool = self.source.tools()[0]
        return await self.chain(Call(id=f"c{self.count}", name="slow", tool=tool, arguments=arguments, caller=caller))

    def outcomes(self) -> list[str]:
        return [record["outcome"] for record in self.journal.audit]


async def test_two_hundred_racing_repeats_have_one_effect_and_one_answer() -> None:
    bench = Bench()
    answers: list[Result] = []

    async def one() -> None:
        answers.append(await bench.call(idempotencyKey="k", x=1))

    async with anyio.create_task_group() as group:
        for _ in range(200):
            group.start_soon(one)
        await anyio.wait_all_tasks_blocked()
        bench.source.go.set()
    assert bench.source.effects == 1
    assert answers == [{"effect": 1}] * 200
    assert sorted(bench.outcomes()) == ["replayed"] * 199 + ["success"]


async def test_a_waiter_runs_itself_when_the_first_one_fails() -> None:
    bench = Bench()
    bench.source.failures = 1
    answers: list[Result] = []

    async def one() -> None:
        answers.append(await bench.call(idempotencyKey="k"))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(one)
        await anyio.wait_all_tasks_blocked()
        bench.source.go.set()
    assert bench.source.effects == 1
    assert [answer.get("effect") for answer in answers].count(1) == 2
    assert sorted(bench.outcomes()) == ["failure", "replayed", "success"]


async def test_a_key_is_the_agents_own_expires_and_has_a_quota() -> None:
    bench = Bench()
    bench.source.go.set()
    assert await bench.call("a", idempotencyKey="k") == {"effect": 1}
    assert await bench.call("b", idempotencyKey="k") == {"effect": 2}
    assert await bench.call("a", idempotencyKey="k") == {"effect": 1}
    bench.clock.now += 61
    assert await bench.call("a", idempotencyKey="k") == {"effect": 3}
    for at in range(3):
        await bench.call("a", idempotencyKey=f"other{at}")
    assert await bench.call("a", idempotencyKey="k") == {"effect": 7}


@pytest.mark.parametrize("key", ["", "x" * 256, "line\nbreak", "nul\0"])
async def test_a_key_that_is_empty_endless_or_unprintable_is_refused(key: str) -> None:
    bench = Bench()
    bench.source.go.set()
    answer = await bench.call(idempotencyKey=key)
    assert answer["error"]["code"] == "invalid_argument"
    assert bench.source.effects == 0


async def test_a_crash_inside_a_tool_tells_the_caller_nothing_but_a_call_id(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.source.failures = 1
    bench.source.go.set()
    answer = await bench.call()
    assert answer["error"]["code"] == "internal"
    assert answer["error"]["callId"] == "c1"
    assert "sk-live" not in json.dumps([answer, *bench.journal.audit])
    assert "sk-live" in caplog.text
    assert bench.outcomes() == ["failure"]


async def test_a_cancelled_call_leaves_one_record_and_no_key() -> None:
    bench = Bench()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: bench.call(idempotencyKey="k"))
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert bench.outcomes() == ["cancelled"]
    bench.source.go.set()
    assert await bench.call(idempotencyKey="k") == {"effect": 1}


async def test_events_tell_of_success_failure_and_change() -> None:
    grove, editor = await sample()
    heard: list[Event] = []
    grove.listen(heard.append)
    await editor.ok("remove_node", nodeId="shed")
    await editor.refused("get_node", nodeId="shed")
    kinds = [type(event) for event in heard]
    assert kinds == [ToolSucceeded, TreeChanged, ToolSucceeded, ToolFailed]
    change = heard[1]
    assert isinstance(change, TreeChanged)
    assert change.node_ids == ("shed",)


async def test_refusals_come_in_the_order_of_the_gate() -> None:
    agents = {"reader": {"rateLimit": "3/minute"}, "editor": {"role": "editor"}}
    grove, editor = await sample(config(agents=agents))
    reader = await grove.agent("reader")
    assert (await reader.call("remove_node", {"nodeId": 5}))["error"]["code"] == "forbidden"
    assert (await reader.call("no_tool", {}))["error"]["code"] == "not_found"
    assert (await reader.call("get_node", {"nodeId": 5}))["error"]["code"] == "invalid_argument"
    assert (await reader.call("remove_node", {"nodeId": 5}))["error"]["code"] == "rate_limited"
    key = {"idempotencyKey": "k", "nodeId": "shed", "versionToken": "stale"}
    first = {**key, "versionToken": await editor.version()}
    done = await editor.agent.call("remove_node", first)
    assert await editor.agent.call("remove_node", key) == done
    assert (await editor.agent.call("remove_node", {**key, "nodeId": 5}))["error"]["reason"] == "schema"
    assert (await editor.agent.call("remove_node", {**key, "nodeId": "gone"}))["error"][
        "reason"
    ] == "idempotency_key_reused"
    assert (await editor.agent.call("remove_node", {"nodeId": "gone", "versionToken": "stale"}))["error"][
        "code"
    ] == "conflict"


async def test_a_tool_outside_the_toolset_looks_like_one_that_does_not_exist() -> None:
    settings = config(
        agents={
            "editor": {"role": "editor"},
            "few": {"role": "editor", "tools": ["get_*"], "deny": ["get_path", "get_ruleset"]},
        }
    )
    few = await Grove(settings).agent("few")
    assert [tool.name for tool in few.tools] == ["get_node", "get_common_ancestor", "get_subtree", "get_view"]
    hidden = (await few.call("remove_bookmark", {"label": "x"}))["error"]
    absent = (await few.call("quite_unheard_of", {"label": "x"}))["error"]
    assert {key: hidden[key] for key in hidden if key != "tool"} | {"message": ""} == {
        key: absent[key] for key in absent if key != "tool"
    } | {"message": ""}
    assert hidden["message"].replace("remove_bookmark", "X") == absent["message"].replace("quite_unheard_of", "X")
    none = await Grove(config(agents={"none": {"role": "editor", "tools": []}})).agent("none")
    assert none.tools == ()


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), {1, 2}, object(), b"bytes", {1: "key"}, [[float("nan")]]],
    ids=["nan", "infinity", "set", "object", "bytes", "number key", "nested nan"],
)
async def test_what_json_cannot_carry_is_refused_with_its_path(value: Any) -> None:
    _, editor = await sample()
    error = await editor.refused("update_payload_property", nodeId="shed", propertyName="x", newValue=value)
    assert (error["code"], error["reason"]) == ("invalid_argument", "not_json")
    assert error["path"].startswith("newValue")


@pytest.mark.parametrize(
    "arguments", [{"nodeId": ["x" * 100_000]}, {"nodeId": "root", "x" * 100_000: 1}, {"nodeId": {"x" * 100_000: {}}}]
)
async def test_what_is_wrong_with_an_argument_is_told_in_few_words_however_large_it_is(
    arguments: dict[str, Any],
) -> None:
    _, editor = await sample()
    error = await editor.refused("get_node", **arguments)
    assert error["reason"] == "schema"
    assert len(json.dumps(error)) < 3_000


async def test_null_in_the_place_of_an_optional_argument_counts_as_left_out() -> None:
    async with Grove() as grove:
        agent = await grove.agent("editor")
        seen = await agent.call("get_node", {"nodeId": "root", "includedProperties": None})
        assert seen["nodeId"] == "root"
        added = await agent.call("add_child", {**ADD, "versionToken": seen["version"], "dryRun": None})
        assert "wouldChange" not in added
        unset = {"propertyName": "x", "newValue": None, "versionToken": added["version"], "dryRun": None}
        await agent.call("update_payload_property", {"nodeId": added["nodeId"], **unset})
        assert (await agent.call("get_node", {"nodeId": added["nodeId"]}))["payload"] == {"x": None}
        for arguments, code in (
            ({"nodeId": None}, "invalid_argument"),
            ({"nodeId": "root", "nide": None}, "invalid_argument"),
        ):
            assert (await agent.call("get_node", arguments))["error"]["code"] == code
        assert (await agent.call("add_child", {**ADD, "versionToken": None}))["error"]["code"] == "conflict"


async def test_arguments_that_are_no_object_or_endlessly_nested_are_refused() -> None:
    _, editor = await sample()
    assert (await editor.agent.call("get_node", ["root"]))["error"]["code"] == "invalid_argument"  # type: ignore[arg-type]
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    error = await editor.refused("update_payload_property", nodeId="shed", propertyName="x", newValue=deep)
    assert error["reason"] == "not_json"
    loop: list[Any] = []
    loop.append(loop)
    assert (await editor.refused("update_payload_property", nodeId="shed", propertyName="x", newValue=loop))[
        "code"
    ] == ("invalid_argument")


async def test_a_caller_cannot_change_the_tree_through_what_it_sent_or_received() -> None:
    _, editor = await sample()
    sent = {"list": [1, {"a": 1}]}
    node = (await editor.ok("add_child", parentNodeId="root", payloadType="T", payloadProps=sent))["nodeId"]
    sent["list"].append(2)
    got = await editor.ok("get_node", nodeId=node)
    got["payload"]["list"][1]["a"] = 9
    view = await editor.ok("get_view", rootNodeId=node)
    view["view"]["payload"]["list"].clear()
    assert (await editor.ok("get_node", nodeId=node))["payload"] == {"list": [1, {"a": 1}]}


class BrokenSink:
    """A full disk."""

    broken = False

    def write(self, sealed: Sealed) -> None:
        if self.broken:
            raise OSError(28, "No space left on device")


async def test_a_mutation_that_cannot_be_recorded_does_not_happen_and_a_read_goes_on() -> None:
    sink = BrokenSink()
    grove, editor = await sample(audit_sinks=[sink])
    before, version = await editor.tree(), await editor.version()
    sink.broken = True
    for tool, arguments in (
        ("remove_node", {"nodeId": "house"}),
        ("update_nodes", {"filter": "@type = Room", "patch": {"x": 1}}),
        ("expand_node", {"nodeId": "house"}),
        ("bookmark", {"nodeId": "house", "label": "b"}),
    ):
        error = await editor.refused(tool, **arguments, idempotencyKey=tool, versionToken=version)
        assert (error["code"], error["reason"]) == ("internal", "journal_unavailable")
    assert await editor.tree() == before
    assert await editor.version() == version
    assert (await editor.ok("list_bookmarks"))["items"] == []
    sink.broken = False
    await editor.ok("remove_node", nodeId="house", idempotencyKey="remove_node", versionToken=version)
    assert verify(grove.audit.lines()) is None


async def test_the_audit_chain_shows_any_alteration(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    for _ in range(2):
        async with Grove(config(workspace={"auditLog": str(log)})) as grove:
            editor = await hand(grove)
            await editor.ok("add_child", **ADD)
            await editor.refused("get_node", nodeId="line\nbreak INFO approved")
    whole = log.read_text().splitlines()
    assert verify(whole) is None
    lines = [line for line in whole if "signedTo" not in json.loads(line)]  # what signs the last records of a run
    assert verify(lines) is None
    assert [json.loads(line)["number"] for line in lines] == [1, 2, 3, 4, 5, 6]
    forged = [
        line.replace('"agent":"editor"', '"agent":"nobody"') if at == 2 else line for at, line in enumerate(lines)
    ]
    assert verify(forged) is not None
    assert verify(lines[:2] + lines[3:]) is not None
    assert verify([lines[1], lines[0], *lines[2:]]) is not None
    assert verify(lines[1:]) is None
    for body in ('{"number":7', "[7", '{"previous":7'):  # anyone can make a hash
        made = f'{body},"hash":"{hashlib.sha256((body + "}").encode()).hexdigest()}"}}'
        breach = verify([*lines, made])
        assert breach is not None
        assert breach.number == 6


async def test_lines_that_are_no_records_are_passed_over_when_a_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    async with Grove(config(workspace={"auditLog": str(log)})) as grove:
        editor = await hand(grove)
        await editor.ok("get_node", nodeId="root")
        with log.open("a") as file:
            file.write('no record\n[]\n{"number": 7}\n{"number": "8", "agent": "a"}\n')
        await editor.ok("get_node", nodeId="root")
    for newest in (False, True):
        page = await AuditFile(log).records(AuditQuery(newest=newest, agent="editor"))
        assert sorted(record["number"] for record in page.records) == [1, 2]
    assert (await AuditFile(log).verify()).breach is not None


async def test_an_endless_name_is_cut_in_the_record() -> None:
    async with Grove(config()) as grove:
        await (await grove.agent("editor")).call("get_node", {"nodeId": "x" * 10_000})
        [record] = grove.audit
        assert record["targets"] == ["x" * 200]


async def test_a_listener_that_fails_fails_alone(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Event] = []

    def failing(event: Event) -> None:
        raise RuntimeError("no room")

    async with Grove(config()) as grove:
        grove.listen(failing)
        grove.listen(heard.append)
        assert (await (await grove.agent("editor")).call("get_node", {"nodeId": "root"}))["nodeId"] == "root"
    assert any(isinstance(event, ToolSucceeded) for event in heard)
    assert "a listener failed" in caplog.text


async def test_a_full_disk_tears_no_line_and_stops_no_read(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    async with Grove(config(workspace={"auditLog": str(log)})) as grove:
        editor = await hand(grove)
        await editor.ok("add_child", **ADD)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            # Room for a part of the next record only.
            resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 50, hard))
            version = await editor.version()
            refused = await editor.refused("add_child", **ADD, versionToken=version)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, handler)
        assert (refused["code"], refused["reason"]) == ("internal", "journal_unavailable")
        await editor.ok("add_child", **ADD, versionToken=version)
    assert verify(log.read_text().splitlines()) is None


async def test_a_rate_limit_admits_exactly_its_number_and_ignores_the_wall_clock() -> None:
    clock = ManualClock()
    grove = Grove(config(agents={"editor": {"role": "editor", "rateLimit": "100/minute"}}), clock=clock)
    agent = await grove.agent("editor")
    answers: list[Result] = []

    async def one(session: str) -> None:
        own = await grove.agent("editor", session=session)
        answers.append(await own.call("get_node", {"nodeId": "root"}))

    async with anyio.create_task_group() as group:
        for at in range(300):
            group.start_soon(one, f"s{at}")
    assert sum("error" not in answer for answer in answers) == 100
    clock.wall = lambda: 0.0  # type: ignore[method-assign]
    assert "error" in await agent.call("get_node", {"nodeId": "root"})
    clock.now += 60
    assert "error" not in await agent.call("get_node", {"nodeId": "root"})


async def test_a_listener_hears_the_kinds_that_it_asked_for_until_it_ends() -> None:
    grove, editor = await sample()
    changes: list[Event] = []
    everything: list[Event] = []
    end, end_all = grove.listen(changes.append, TreeChanged), grove.listen(everything.append)
    await editor.ok("add_child", **ADD)
    assert [type(event) for event in changes] == [TreeChanged]
    assert {type(event) for event in everything} == {TreeChanged, ToolSucceeded}
    end()
    everything.clear()
    await editor.ok("add_child", **ADD)
    assert len(changes) == 1
    assert any(isinstance(event, TreeChanged) for event in everything)
    end_all()
    everything.clear()
    await editor.ok("add_child", **ADD)
    assert not everything


async def test_calls_that_succeed_are_counted_and_no_others(caplog: pytest.LogCaptureFixture) -> None:
    grove, editor = await sample()
    counted: list[tuple[str, str]] = []

    def broken(agent: str, tool: str, seconds: float) -> None:
        raise RuntimeError("of no concern to the call")

    grove.tally(broken)
    grove.tally(lambda agent, tool, seconds: counted.append((agent, tool)))
    await editor.ok("get_node", nodeId="root")
    await editor.refused("get_node", nodeId="nowhere")
    assert counted == [("editor", "get_node")]
    assert "a tally failed" in caplog.text


async def test_the_record_and_the_answer_of_a_call_say_the_same_as_its_result() -> None:
    """Also where the text that was made first does not fit the budget, or has letters beyond ASCII."""
    grove, editor = await sample()
    made = await editor.ok("add_child", **{**ADD, "payloadProps": {"name": "Küche", "text": "x" * 3_000}})
    for arguments in ({}, {"maxTokens": 300}):
        result = await editor.ok("get_subtree", nodeId=made["nodeId"], **arguments)
        newest = (await grove.audit_log.records(AuditQuery(newest=True, limit=1))).records[0]
        assert json.loads(json.dumps(newest["result"])) == result

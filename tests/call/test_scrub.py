"""What comes back from a source is scrubbed before anyone keeps or sees it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from grove_kit import ManualClock, recording
from toolgrove.call import Chain
from toolgrove.call.audit import AuditStep
from toolgrove.call.scrub import ScrubStep
from toolgrove.errors import ToolError, UpstreamFailed
from toolgrove.events import Listeners
from toolgrove.pool.secrets import Secrets
from toolgrove.store.journal import MemoryJournal
from toolgrove.types import Annotations, Call, Caller, Kind, Result, Tool, ToolSpec

pytestmark = pytest.mark.anyio
KEY = "sk-canary-7f3q9Z"


class Leak:
    """A source that tells all it knows, in one way or another."""

    name = "leak"

    def __init__(self, way: Any) -> None:
        self.way = way

    async def call(self, call: Call) -> Result:
        result: Result = await self.way(call)
        return result


class Ear:
    """A client that writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append(message)

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        self.heard += (message, schema)
        return {"answer": KEY}


async def leak(way: Any, *, kind: Kind = "mcp", source_name: str = "leak") -> tuple[Result, Call, MemoryJournal]:
    secrets = Secrets({}, environ={"KEY": KEY})
    secrets.fill("${env:KEY}", field="env.KEY", user="leak_*")
    clock = ManualClock()
    journal = MemoryJournal(clock)
    source = Leak(way)
    steps = (AuditStep(journal, clock, Listeners(), recording(secrets)), ScrubStep(secrets))
    spec = ToolSpec(
        name="leak", description="", input_schema={}, output_schema={}, annotations=Annotations(), source=source_name
    )
    call = Call(
        id="c1",
        name="leak",
        tool=Tool(spec=spec, source=source, mutates=True, kind=kind),
        arguments={},
        caller=Caller(agent="a", session="a", role="editor"),
        client=Ear(),
    )
    return await Chain(steps, source.call)(call), call, journal


async def test_a_result_is_scrubbed_with_its_keys() -> None:
    async def way(call: Call) -> Result:
        return {"token": KEY, KEY: ["x", {"deep": f"Bearer {KEY}"}]}

    result, _, _ = await leak(way)
    assert result == {"token": "[secret KEY]", "[secret KEY]": ["x", {"deep": "Bearer [secret KEY]"}]}


async def test_content_blocks_are_scrubbed_even_where_a_secret_is_split_between_two() -> None:
    async def way(call: Call) -> Result:
        content = [
            {"type": "text", "text": f"the key is {KEY[:9]}"},
            {"type": "text", "text": f"{KEY[9:]}, that is all"},
            {"type": "resource", "resource": {"uri": f"x://{KEY}", "text": KEY}},
        ]
        return {"content": content, "structuredContent": [KEY], "_meta": {"note": KEY}}

    result, call, _ = await leak(way)
    assert result["content"] == [
        {"type": "text", "text": "the key is [secret KEY]"},
        {"type": "text", "text": "[secret KEY], that is all"},
        {"type": "resource", "resource": {"uri": "x://[secret KEY]", "text": "[secret KEY]"}},
    ]
    assert (result["structuredContent"], result["_meta"]) == (["[secret KEY]"], {"note": "[secret KEY]"})
    assert call.changed == ("secrets",)


async def test_a_failure_that_the_tool_tells_itself_is_scrubbed_whole() -> None:
    async def way(call: Call) -> Result:
        raise ToolError(KEY, result={"content": [{"type": "text", "text": KEY}], "isError": True})

    result, call, journal = await leak(way)
    assert result == {"content": [{"type": "text", "text": "[secret KEY]"}], "isError": True}
    assert call.changed == ("secrets",)
    assert KEY not in "".join(journal.audit.lines())


async def test_a_failure_is_scrubbed_in_its_message_and_its_facts() -> None:
    async def way(call: Call) -> Result:
        raise UpstreamFailed(f"401 for {KEY}", reason="tool_error", detail={"sent": [KEY]})

    result, _, journal = await leak(way)
    error = result["error"]
    assert error["message"] == "401 for [secret KEY]"
    assert error["detail"] == {"sent": ["[secret KEY]"]}
    assert KEY not in "".join(journal.audit.lines())


async def test_progress_is_scrubbed_as_one_text_and_questions_too() -> None:
    async def way(call: Call) -> Result:
        assert call.client is not None
        await call.client.progress(1, 2, f"half of it: {KEY[:8]}")
        await call.client.progress(2, 2, KEY[8:])
        await call.client.progress(2, 2, None)
        answer = await call.client.elicit(f"is {KEY} right?", {"title": KEY})
        return {"answered": answer == {"answer": KEY}}

    result, call, _ = await leak(way)
    assert isinstance(call.client, Ear)
    assert call.client.heard == [
        "half of it: [secret KEY]",
        "[secret KEY]",
        None,
        "is [secret KEY] right?",
        {"title": "[secret KEY]"},
    ]
    assert result == {"answered": True}


async def test_nothing_hides_in_a_question_that_a_tool_asks_a_person() -> None:
    async def way(call: Call) -> Result:
        assert call.client is not None
        await call.client.elicit("run \u202egpj.exe\u200b?", None)
        return {}

    _, call, _ = await leak(way)
    assert isinstance(call.client, Ear)
    assert call.client.heard == [r"run \u202egpj.exe\u200b?", None]


async def test_what_others_do_goes_on_while_a_large_answer_is_scrubbed() -> None:
    answered = anyio.Event()
    ended = anyio.Event()
    turns = 0

    async def way(call: Call) -> Result:
        content = [{"type": "text", "text": f"with {KEY} a line of a log\n" * 40_000}]
        answered.set()
        return {"content": content}

    async def another() -> None:
        nonlocal turns
        await answered.wait()
        while not ended.is_set():
            turns += 1
            await anyio.sleep(0)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(another)
        result, _, _ = await leak(way)
        ended.set()
    assert turns > 0
    assert result["content"] == [{"type": "text", "text": "with [secret KEY] a line of a log\n" * 40_000}]


async def test_the_workspace_holds_no_secrets_and_is_left_alone() -> None:
    async def way(call: Call) -> Result:
        assert isinstance(call.client, Ear)
        return {"said": KEY}

    assert (await leak(way, kind="builtin", source_name="workspace"))[0] == {"said": KEY}


@pytest.mark.parametrize(("kind", "source_name"), [("builtin", "coordination"), ("mcp", "workspace")])
async def test_sub_agents_and_servers_of_any_name_are_scrubbed(kind: Kind, source_name: str) -> None:
    async def way(call: Call) -> Result:
        return {"said": KEY}

    assert (await leak(way, kind=kind, source_name=source_name))[0] == {"said": "[secret KEY]"}

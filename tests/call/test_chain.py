"""The chain: steps in their order, and those left out that do not concern a tool."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove_kit import ManualClock
from toolgrove.call import Chain, Only
from toolgrove.call.begun import BegunStep, changes_outside
from toolgrove.call.cut_off import CutOffStep
from toolgrove.call.idempotency import IdempotencyStep, is_repeatable
from toolgrove.call.parts import has_parts, parts_step
from toolgrove.call.role import is_for_writers, role_step
from toolgrove.call.scrub import WORKSPACE, ScrubStep, is_scrubbed
from toolgrove.call.toolset import is_unknown, toolset_step
from toolgrove.pool.secrets import Secrets
from toolgrove.store.journal import MemoryJournal
from toolgrove.types import Annotations, Call, Caller, Kind, Next, Result, Step, Tool, ToolSpec

pytestmark = pytest.mark.anyio


class Nowhere:
    name = "nowhere"

    def tools(self) -> tuple[Tool, ...]:
        return ()

    async def call(self, call: Call) -> Result:
        return {}


def made(name: str, *, mutates: bool, kind: Kind, source: str, parts: bool) -> Tool:
    spec = ToolSpec(
        name=name, description="", input_schema={}, output_schema={}, annotations=Annotations(), source=source
    )
    stands_for = (lambda arguments: {"other": 0}) if parts else None
    return Tool(spec=spec, source=Nowhere(), mutates=mutates, kind=kind, stands_for=stands_for)


TOOLS = st.builds(
    made,
    st.sampled_from(("a", "b")),
    mutates=st.booleans(),
    kind=st.sampled_from(get_args(Kind)),
    source=st.sampled_from((WORKSPACE, "other")),
    parts=st.booleans(),
)


def called(tool: Tool | None) -> Call:
    """A call by a reader, with a key."""
    caller = Caller(agent="ann", session="ann")
    name = "a" if tool is None else tool.spec.name
    return Call(id="c1", name=name, tool=tool, arguments={"idempotencyKey": "k"}, caller=caller)


def noting(name: str, met: list[str]) -> Step:
    def step(call: Call, onward: Next) -> Awaitable[Result]:
        met.append(name)
        return onward(call)

    return step


async def done(call: Call) -> Result:
    return {"done": call.name}


@given(tools=st.lists(TOOLS, max_size=6))
async def test_a_call_meets_the_steps_that_concern_its_tool_in_their_order(tools: list[Tool]) -> None:
    met: list[str] = []
    steps = (
        noting("first", met),
        Only(lambda tool: tool.mutates, noting("writes", met)),
        Only(lambda tool: tool.kind == "mcp", noting("foreign", met)),
        noting("last", met),
    )
    chain = Chain(steps, done)
    for tool in tools:
        met.clear()
        assert await chain(called(tool)) == {"done": tool.spec.name}
        wanted = [("first", True), ("writes", tool.mutates), ("foreign", tool.kind == "mcp"), ("last", True)]
        assert met == [name for name, concerned in wanted if concerned]


async def test_a_call_without_a_tool_meets_every_step() -> None:
    met: list[str] = []
    chain = Chain((Only(lambda tool: False, noting("one", met)), noting("two", met)), done)
    await chain(called(None))
    assert met == ["one", "two"]


async def test_a_chain_keeps_no_tool() -> None:
    chain = Chain((Only(lambda tool: tool.mutates, noting("writes", [])),), done)
    tool = made("a", mutates=True, kind="mcp", source="other", parts=False)
    gone = weakref.ref(tool)
    await chain(called(tool))
    del tool
    gc.collect()
    assert gone() is None


async def never(call: Call) -> None:
    raise AssertionError("such a call is not put on record before it is sent")


LEFT_OUT: list[tuple[Callable[[Tool], bool], Step]] = [
    (is_unknown, toolset_step),
    (is_for_writers, role_step),
    (has_parts, parts_step),
    (is_repeatable, IdempotencyStep(MemoryJournal(ManualClock()))),
    (changes_outside, CutOffStep(MemoryJournal(ManualClock()))),
    (changes_outside, BegunStep(never)),
    (is_scrubbed, ScrubStep(Secrets({}))),
]


def state(call: Call) -> dict[str, Any]:
    return {name: getattr(call, name) for name in Call.__slots__}


@given(tool=TOOLS)
async def test_a_step_that_does_not_concern_a_tool_would_only_pass_its_call_on(tool: Tool) -> None:
    for concerns, step in LEFT_OUT:
        if not concerns(tool):
            call = called(tool)
            before = state(call)
            assert await step(call, done) == {"done": tool.spec.name}
            assert state(call) == before

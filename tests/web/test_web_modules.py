"""Modules of the project that exit or never end, in a real gateway: each fails alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from e2e.servers import PYTHON
from e2e.wire import ERAS
from mcp_text import told
from raised import SECRET, TOLD, refused
from waiting import DEADLINE, eventually
from web.gateway import PROJECT, call, serving

pytestmark = pytest.mark.anyio
MODULE = """
import sys
from pydantic import BaseModel


class Words(BaseModel):
    text: str = ""


class Speaker:
    description = "Says it again."
    input_schema = Words
    output_schema = Words

    {execute}
"""
ECHO = 'def execute(self, inputs, context): return {"text": inputs["text"]}'
EXITS = {
    "exit_sync": "def execute(self, inputs, context): sys.exit(7)",
    "exit_async": "async def execute(self, inputs, context): sys.exit(7)",
}


async def test_modules_that_exit_or_never_end_fail_alone(tmp_path: Path) -> None:
    folder = tmp_path / "extensions" / "say"
    folder.mkdir(parents=True)
    (folder / "echo.py").write_text(MODULE.format(execute=ECHO))
    (folder / "exits.py").write_text("import sys; sys.exit(7)")
    (folder / "endless.py").write_text("while True: pass")
    for name, execute in EXITS.items():
        (folder / f"{name}.py").write_text(MODULE.format(execute=execute))
    config = {**PROJECT, "extensions": "extensions", "importBudget": 1}
    with serving(tmp_path, config, loud=True) as gateway:
        for left_out in ("say.exits", "say.endless"):
            assert left_out in gateway.log
        async with gateway.http("editor") as http:
            for name in EXITS:
                answer = await call(http, "editor", f"say-{name}")
                assert answer["error"]["reason"] == "module_error", answer
            assert await call(http, "editor", "say-echo", {"text": "hello"}) == {"text": "hello"}
            (folder / "later.py").write_text("import sys; sys.exit(7)")  # must not end what watches the folder
            await eventually(lambda: "later.py" in gateway.log)
            (folder / "last.py").write_text(MODULE.format(execute=ECHO))
            await eventually(lambda: _answers(http, "say-last"))
            (folder / "last.py").rename(folder / "renamed.py")
            await eventually(lambda: _answers(http, "say-renamed"))
            assert not await _answers(http, "say-last")


async def _answers(http: httpx2.AsyncClient, tool: str) -> bool:
    return "error" not in await call(http, "editor", tool, {"text": "hello"})


@pytest.mark.parametrize("era", ERAS)
async def test_whatever_a_module_raises_its_call_alone_gets_one_answer(tmp_path: Path, era: str) -> None:
    (tmp_path / "raising.py").write_text("from raised import raising_registry\n\nmodules = raising_registry()\n")
    agents = {"editor": {"role": "editor", "tools": ["raise-*", "echo"]}}
    calls = [(form, kind) for kind in TOLD for form in ("raise.sync", "raise.async")]
    answers: dict[tuple[str, str], Any] = {}
    with serving(tmp_path, {"agents": agents, "extensions": "raising.py"}, environ=PYTHON, loud=True) as gateway:
        async with asyncio.timeout(2 * DEADLINE), gateway.connect("editor", era) as client:

            async def ask(form: str, kind: str) -> Any:
                beside = client.call_tool("echo", {"kind": kind})
                answer, other = await asyncio.gather(client.call_tool(form.replace(".", "-"), {"kind": kind}), beside)
                assert told(other) == {"kind": kind}
                return told(answer)

            for start in range(0, len(calls), 24):
                some = calls[start : start + 24]
                answers |= zip(some, await asyncio.gather(*(ask(*each) for each in some)), strict=True)
    reasons = {each: (answer["error"]["code"], answer["error"]["reason"]) for each, answer in answers.items()}
    assert {each: reason for each, reason in reasons.items() if reason != refused(*each)} == {}
    assert SECRET not in str(answers)

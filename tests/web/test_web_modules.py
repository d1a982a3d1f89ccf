"""Modules of the project that exit or never end, in a real gateway: each fails alone."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from waiting import eventually
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
            await eventually(lambda: _answers(http))


async def _answers(http: httpx2.AsyncClient) -> bool:
    return "error" not in await call(http, "editor", "say-last", {"text": "hello"})

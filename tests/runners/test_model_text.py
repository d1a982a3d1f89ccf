"""What a model reads of a foreign tool's result: its words, its data once, and no wrapping."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from runners.adk_model import thinking
from runners.brain import Ask, Say, in_turn
from runners.endpoint import ask, say, scripted, serving
from toolgrove import Config, Grove
from toolgrove.runners.adk import AdkRunner
from toolgrove.runners.model_text import model_text
from toolgrove.runners.openai import OpenAIRunner
from waiting import DEADLINE

pytestmark = pytest.mark.anyio
SERVER = Path(__file__).parent.parent / "pool" / "mcp" / "faithful.py"
WORDS = {"type": "text", "text": "two rooms"}


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"nodeId": "root"}, '{"nodeId": "root"}'),
        ({"error": {"code": "forbidden"}}, '{"error": {"code": "forbidden"}}'),
        ({"content": [WORDS]}, "two rooms"),
        ({"content": [WORDS], "structuredContent": {"rooms": 2}}, 'two rooms\n{"rooms": 2}'),
        ({"content": [{"type": "text", "text": '{"rooms":2}'}], "structuredContent": {"rooms": 2}}, '{"rooms":2}'),
        ({"content": [], "structuredContent": [1]}, "[1]"),
        ({"content": [], "_meta": {"x": 1}}, "(no content)"),
        (
            {
                "content": [
                    {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                    {"type": "resource_link", "uri": "demo://1", "name": "one"},
                    {"type": "resource", "resource": {"uri": "demo://2", "text": "two"}},
                    {"type": "resource", "resource": {"uri": "demo://3", "blob": "AAAA"}},
                ]
            },
            "[image: image/png, not shown]\n[one: demo://1]\ntwo\n[a file: demo://3]",
        ),
    ],
)
def test_a_result_in_words(result: dict[str, Any], text: str) -> None:
    assert model_text(result) == text


def project(folder: Path) -> Config:
    results = {"looks": {"content": [WORDS], "isError": False}, "fails": {"content": [WORDS], "isError": True}}
    listed = [{"name": name, "inputSchema": {"type": "object"}} for name in results]
    said = folder / "said.json"
    said.write_text(json.dumps({"tools": listed, "results": results}))
    server = {"command": sys.executable, "args": ["-I", "-S", str(SERVER), str(said)], "reads": ["*"]}
    return Config.model_validate(
        {"mcpServers": {"up": server}, "agents": {"a": {"tools": ["up_*"]}}, "startupBudget": 30}
    )


async def test_a_chat_model_is_told_in_words(tmp_path: Path) -> None:
    script = scripted(ask(("up_looks", {}), ("up_fails", {})), say("done"))
    with anyio.fail_after(DEADLINE):
        async with Grove(project(tmp_path)) as grove, serving(script) as endpoint:
            await OpenAIRunner(url=endpoint.url, model="scripted").run(await grove.agent("a"), "Look.")
    told = [message["content"] for message in endpoint.requests[-1].body["messages"] if message["role"] == "tool"]
    assert told == ["two rooms", "The tool failed: two rooms"]


async def test_a_model_of_the_adk_is_told_in_words(tmp_path: Path) -> None:
    brain, turns = in_turn(Ask(("up_looks", {}), ("up_fails", {})), Say("done"))
    with anyio.fail_after(DEADLINE):
        async with Grove(project(tmp_path)) as grove:
            await AdkRunner(thinking(brain)).run(await grove.agent("a"), "Look.")
    assert turns[-1].results == ({"output": "two rooms"}, {"error": "two rooms"})

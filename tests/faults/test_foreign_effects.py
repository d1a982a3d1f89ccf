"""Who decides whether a foreign tool changes something: the operator; its server only where the operator trusts it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from faults.kit import fake, running
from toolgrove import Grove
from toolgrove.mcp_face import mcp_endpoint

pytestmark = pytest.mark.anyio

HINTS: dict[str, dict[str, bool]] = {
    "silent": {},
    "claims": {"readOnlyHint": True},
    "torn": {"readOnlyHint": True, "destructiveHint": True},
    "erases": {"destructiveHint": True},
    "writes": {"readOnlyHint": False, "destructiveHint": False},
}


@pytest.fixture
def server(tmp_path: Path) -> dict[str, Any]:
    tools = [{"name": name, "inputSchema": {"type": "object"}, "annotations": hints} for name, hints in HINTS.items()]
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    return fake("file", option=tmp_path / "tools.json", reads=[], changes=[])


async def readers_tools(grove: Grove) -> set[str]:
    return {spec.name.removeprefix("up_") for spec in (await grove.agent("reader")).tools if spec.source == "up"}


async def test_a_foreign_tool_changes_something_until_the_operator_says_otherwise(server: dict[str, Any]) -> None:
    async with running({"up": server}) as grove:
        assert await readers_tools(grove) == set()
        reader = await grove.agent("reader")
        for name in HINTS:
            verdict = reader.receipt[f"up_{name}"]
            assert verdict.verdict == "restricted"
            assert f'mcpServers.up.reads: ["{name}"]' in verdict.rule, "the line to add"
            assert (await reader.call(f"up_{name}", {}))["error"]["code"] == "forbidden"
        assert {f"up_{name}" for name in HINTS} <= {spec.name for spec in (await grove.agent("a")).tools}


async def test_an_agent_in_read_only_mode_gets_only_what_reads(server: dict[str, Any]) -> None:
    async with running({"up": {**server, "reads": ["silent"]}}, readOnly=True) as grove:
        agent = await grove.agent("a")
        assert [spec.name for spec in agent.tools if spec.source == "up"] == ["up_silent"]
        assert "read-only mode" in agent.receipt["up_claims"].rule


@pytest.mark.parametrize(
    ("word", "read"),
    [
        ({"reads": ["silent", "er*"]}, {"silent", "erases"}),
        ({"reads": ["*"], "changes": ["er*", "torn"]}, {"silent", "claims", "writes"}),
        ({"trustHints": True}, {"claims"}),
        ({"trustHints": True, "reads": ["writes"], "changes": ["claims"]}, {"writes"}),
        ({"changes": ["silent"]}, set()),
    ],
    ids=["reads", "changes beats reads", "hints", "all three", "changes alone"],
)
async def test_changes_beats_reads_beats_hints(server: dict[str, Any], word: dict[str, Any], read: set[str]) -> None:
    async with running({"up": {**server, **word}}) as grove:
        assert await readers_tools(grove) == read


async def test_what_the_operator_calls_changing_has_no_line_to_add(server: dict[str, Any]) -> None:
    async with running({"up": {**server, "changes": ["claims"]}}) as grove:
        assert (await grove.agent("reader")).receipt["up_claims"].rule == "role 'reader': the tool changes something"


async def test_another_word_of_the_operator_is_another_receipt(server: dict[str, Any]) -> None:
    receipts = set()
    for word in ({}, {"reads": ["silent"]}, {"reads": ["claims"]}):
        async with running({"up": {**server, **word}}) as grove:
            receipts.add((await grove.agent("reader")).receipt.hash)
    assert len(receipts) == 3


async def test_clients_hear_exactly_what_we_were_told(server: dict[str, Any]) -> None:
    async with running({"up": {**server, "reads": ["silent", "erases", "writes"]}}) as grove:
        agent = await grove.agent("a")
        async with Client(mcp_endpoint(agent, "1").server) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        written = {name: tool.model_dump(by_alias=True, exclude_none=True) for name, tool in listed.items()}
        assert {name: written[f"up_{name}"].get("annotations") for name in HINTS} == HINTS
        exported = {tool["function"]["name"]: tool["function"] for tool in agent.openai_tools(embed_annotations=True)}
        assert "destructive" not in exported["up_silent"]["description"]
        assert "destructive=true" in exported["up_erases"]["description"]

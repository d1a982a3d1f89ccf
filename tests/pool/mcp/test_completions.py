"""Suggestions of MCP servers for the prompts and templates that an agent has, and for no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from pool.mcp.test_resources import ERAS, SECRET, Json, connected, faithful, project

pytestmark = pytest.mark.anyio
SAID: Json = {
    "tools": [],
    "results": {},
    "prompts": [{"name": "greet", "arguments": [{"name": "who"}]}, {"name": "private"}, {"name": "many"}],
    "told": {},
    "resources": [],
    "templates": [
        {"uriTemplate": "notes://{day}", "name": "notes"},
        {"uriTemplate": "private://{day}", "name": "private"},
    ],
    "contents": {},
    "suggested": {
        "greet": ["Ada", "Alan", SECRET],
        "private": ["mine"],
        "many": ["x"] * 101,
        "notes://{day}": ["monday"],
        "private://{day}": ["mine"],
    },
}
GRANTED: Json = {"prompts": ["p_greet", "p_many"], "resources": ["p:notes://*"]}
WHO, DAY = {"name": "who", "value": "A"}, {"name": "day", "value": "m"}


def prompt(name: str) -> PromptReference:
    return PromptReference(type="ref/prompt", name=name)


def template(uri: str) -> ResourceTemplateReference:
    return ResourceTemplateReference(type="ref/resource", uri=uri)


async def refusal(client: Client, ref: Any) -> str:
    with pytest.raises(MCPError) as refused:
        await client.complete(ref, {"name": "x", "value": ""})
    return refused.value.error.message


@ERAS
async def test_arguments_of_what_is_granted_are_completed(
    era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    server = faithful(tmp_path, "p", SAID) | {"env": {"TOKEN": "${TOKEN}"}}
    async with project({"p": server}, agent=GRANTED) as grove:
        async with connected(await grove.agent("agent"), era) as client:
            assert client.server_capabilities.completions is not None
            found = (await client.complete(prompt("p_greet"), WHO)).completion
            assert (found.values, found.total, found.has_more) == (["Ada", "Alan"], 2, False)
            assert (await client.complete(template("notes://{day}"), DAY)).completion.values == ["monday"]
            everything = (await client.complete(prompt("p_greet"), {"name": "who", "value": ""})).completion.values
            assert SECRET not in everything
            assert "malformed" in await refusal(client, prompt("p_many"))
            foreign = [prompt("p_private"), prompt("p_none"), template("private://{day}"), template("none://{x}")]
            assert {await refusal(client, ref) for ref in foreign} == {"Nothing to complete"}
        records = [record for record in grove.audit if record["operation"] == "completion/complete"]
        assert [tuple(record["targets"]) for record in records][:2] == [("p_greet",), ("p:notes://{day}",)]
        assert len(records) == 8


async def test_a_server_that_completes_nothing_suggests_nothing(tmp_path: Path) -> None:
    said = {key: value for key, value in SAID.items() if key != "suggested"}
    servers = {"p": faithful(tmp_path, "p", said)}
    async with project(servers, agent=GRANTED, none={}) as grove:
        async with connected(await grove.agent("agent")) as client:
            assert (await client.complete(prompt("p_greet"), WHO)).completion.values == []
        async with connected(await grove.agent("none")) as client:
            assert client.server_capabilities.completions is None

"""What tools of servers and documents are called here; a new name opens nothing that was closed under the old one."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from toolgrove import Agent, Config, Grove

pytestmark = pytest.mark.anyio
FAITHFUL = Path(__file__).parent / "mcp" / "faithful.py"
Json = dict[str, Any]


def server(folder: Path, *names: str, file: str = "said", **more: Any) -> Json:
    """A server that has tools of these names; each answers with its own."""
    said = folder / f"{file}.json"
    tools = [{"name": name, "description": f"Tool {name}.", "inputSchema": {"type": "object"}} for name in names]
    results = {name: {"content": [{"type": "text", "text": name}]} for name in names}
    said.write_text(json.dumps({"tools": tools, "results": results}))
    return {"command": sys.executable, "args": ["-I", "-S", str(FAITHFUL), str(said)], **more}


@asynccontextmanager
async def project(agent: Json, servers: Json, **more: Any) -> AsyncIterator[tuple[Grove, Agent]]:
    config = Config.model_validate(
        {"workspace": False, "agents": {"a": {"role": "editor", **agent}}, "mcpServers": servers, **more}
    )
    async with Grove(config, patience=60) as grove:
        yield grove, await grove.agent("a")


def names(agent: Agent) -> set[str]:
    return {spec.name for spec in agent.tools}


async def test_a_prefix_and_new_names_hold_in_the_list_the_call_the_receipt_and_the_record(tmp_path: Path) -> None:
    renamed = server(tmp_path, "find", "drop", "odd.name", prefix="gh", rename={"drop": "remove_ticket"})
    async with project({"tools": ["gh_*", "remove_ticket"]}, {"github": renamed}) as (grove, agent):
        assert names(agent) == {"gh_find", "gh_odd_name", "remove_ticket"}
        assert (await agent.call("remove_ticket"))["content"][0]["text"] == "drop"
        assert (await agent.call("gh_find"))["content"][0]["text"] == "find"
        assert (await agent.call("github_drop"))["error"]["code"] == "not_found"
        assert agent.receipt["remove_ticket"].source == "github"
        assert {record["operation"] for record in grove.audit} >= {"remove_ticket", "gh_find"}
        assert {pin.own_name for pin in grove.pins.list()} == {"find", "drop", "odd.name"}


async def test_an_empty_prefix_leaves_the_server_s_own_names(tmp_path: Path) -> None:
    async with project({"tools": ["*"]}, {"up": server(tmp_path, "find", prefix="")}) as (_, agent):
        assert "find" in names(agent)


async def test_what_is_excluded_or_not_included_is_there_for_nobody_and_says_why(tmp_path: Path) -> None:
    servers = {
        "one": server(tmp_path, "get_a", "get_b", "put_a", include=["get_*"], exclude=["get_b"]),
        "two": server(tmp_path, "x", "y", file="two", disabledTools=["x"]),
        "three": server(tmp_path, "x", "y", file="three", includeTools=["x"]),
    }
    async with project({"tools": ["*"]}, servers) as (_, agent):
        assert names(agent) >= {"one_get_a", "two_y", "three_x"}
        assert not names(agent) & {"one_get_b", "one_put_a", "two_x", "three_y"}
        assert agent.receipt["one_get_b"][:2] == ("masked", "mcpServers.one.exclude: get_b")
        assert agent.receipt["one_put_a"][:2] == ("masked", "mcpServers.one.include does not name it")
        assert (await agent.call("two_x"))["error"]["code"] == "not_found"


@pytest.mark.parametrize("naming", [{"rename": {"drop": "tidy"}}, {"prefix": ""}, {"prefix": "x"}])
async def test_a_new_name_does_not_slip_past_what_forbids_the_old_one(tmp_path: Path, naming: Json) -> None:
    servers = {"up": server(tmp_path, "drop", "find", **naming)}
    [name] = {"tidy" if "rename" in naming else "drop" if naming["prefix"] == "" else "x_drop"}
    async with project({"tools": ["*"], "deny": ["up_drop"]}, servers) as (_, agent):
        assert agent.receipt[name][:2] == ("denied", "deny: up_drop")
        assert (await agent.call(name))["error"]["code"] == "not_found"
    async with project({"tools": ["*"], "approve": ["up_dr*"]}, servers) as (_, agent):
        assert agent.approvals == {name: "approve: up_dr*"}
    async with project({"tools": ["up_drop"]}, servers) as (_, agent):
        assert not names(agent), "a grant goes by the name that there is"
    async with project({"tools": ["*"], "mcp": {"up": {"mask": ["drop"]}}}, servers) as (_, agent):
        assert agent.receipt[name].verdict == "masked"
    async with project({"tools": ["*"]}, servers, record={"tools": {"up_drop": "none"}}) as (grove, agent):
        await agent.call(name)
        await agent.call(next(iter(names(agent) - {name, "spawn_agents", "list_available_agents"})))
        kept = {
            record["operation"]: "argumentsHash" in record for record in grove.audit if record["outcome"] == "success"
        }
        assert kept[name] is False
        assert any(kept.values())


async def test_a_pin_holds_under_whatever_name(tmp_path: Path) -> None:
    state = tmp_path / "state"
    before = server(tmp_path, "find")
    async with project({"tools": ["*"]}, {"up": before}, state=str(state)) as (_, agent):
        assert "up_find" in names(agent)
    said = json.loads((tmp_path / "said.json").read_text())
    said["tools"][0]["description"] = "Does something else."
    (tmp_path / "said.json").write_text(json.dumps(said))
    changed = {**before, "rename": {"find": "look"}}
    async with project({"tools": ["*"]}, {"up": changed}, state=str(state)) as (_, agent):
        assert agent.receipt["look"].verdict == "quarantined"


async def test_nobody_takes_a_name_that_is_somebody_else_s(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    servers = {
        "one": server(tmp_path, "find"),
        "two": server(tmp_path, "seek", file="two", rename={"seek": "one_find"}),
        "three": server(tmp_path, "x", file="three", rename={"x": "spawn_agents"}),
    }
    with caplog.at_level(logging.ERROR, logger="toolgrove.pool"):
        async with project({"tools": ["*"]}, servers) as (_, agent):
            assert (await agent.call("one_find"))["content"][0]["text"] == "find"
            reasons = {offer.source: offer.reason for offer in agent.receipt.rejected}
    assert "is a tool of 'one' already" in reasons["two"]
    assert "is a built-in tool" in reasons["three"]
    assert all(reason in caplog.text for reason in reasons.values())


async def test_an_excluded_tool_is_in_nobody_s_way(tmp_path: Path) -> None:
    swapped = server(tmp_path, "drop", "safe_drop", exclude=["drop"], rename={"safe_drop": "up_drop"})
    async with project({"tools": ["up_drop"]}, {"up": swapped}) as (_, agent):
        assert (await agent.call("up_drop"))["content"][0]["text"] == "safe_drop"


DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "https://shop.example"}],
    "paths": {
        "/items/{item_id}": {
            "get": {
                "operationId": "get_item_items__item_id__get",
                "tags": ["items"],
                "parameters": [{"name": "item_id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "ok"}},
            }
        },
        "/users": {
            "get": {"operationId": "list users", "tags": ["admin"], "responses": {"200": {"description": "ok"}}}
        },
        "/health": {"get": {"operationId": "_health_", "responses": {"200": {"description": "ok"}}}},
    },
}


async def of_document(folder: Path, agent: Json, **entry: Any) -> Agent:
    (folder / "shop.json").write_text(json.dumps(DOCUMENT))
    config = Config.model_validate(
        {
            "workspace": False,
            "agents": {"a": {"role": "editor", **agent}},
            "httpTools": {"fa": {"openapi": str(folder / "shop.json"), **entry}},
        }
    )
    async with Grove(config, patience=60) as grove:
        return await grove.agent("a")


async def test_an_operation_id_passes_unaltered_where_it_is_legal(tmp_path: Path) -> None:
    agent = await of_document(tmp_path, {"tools": ["fa_*"]})
    assert names(agent) == {"fa_get_item", "fa_list_users", "fa__health_"}  # FastAPI added path and method to the first


async def test_the_old_spelling_of_an_operation_still_matches_with_a_warning(tmp_path: Path) -> None:
    old = "fa_get_item_items__item_id__get"
    agent = await of_document(tmp_path, {"tools": [old]})
    assert names(agent) == {"fa_get_item"}
    assert [one for one in agent.receipt.warnings if "old spelling" in one and old in one]
    denied = await of_document(tmp_path, {"tools": ["*"], "deny": [old]})
    assert denied.receipt["fa_get_item"].rule == f"deny: {old}"
    left_out = await of_document(tmp_path, {"tools": ["fa_*"]}, exclude=["get_item_items_item_id_get"])
    assert names(left_out) == {"fa_list_users", "fa__health_"}


async def test_operations_are_chosen_by_tag_and_name(tmp_path: Path) -> None:
    tagged = await of_document(tmp_path, {"tools": ["*"]}, tags=["item*"], prefix="shop")
    assert "shop_get_item" in names(tagged)
    assert tagged.receipt["shop_list_users"][:2] == ("masked", "httpTools.fa.tags names none of its tags")
    renamed = await of_document(tmp_path, {"tools": ["people"]}, rename={"list_users": "people"})
    assert names(renamed) == {"people"}


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"mcpServers": {"up": {"command": "x", "rename": {"a": "c", "b": "c"}}}}, "would both be 'c'"),
        ({"mcpServers": {"up": {"command": "x", "prefix": "a b"}}}, "prefix"),
        ({"mcpServers": {"up": {"command": "x", "rename": {"a": "no spaces"}}}}, "a name has 1 to 64"),
        ({"mcpServers": {"up": {"command": "x", "exclude": ["@read"]}}}, "only names and globs"),
        ({"httpTools": {"h": {"url": "https://x.example", "prefix": "y"}}}, "about the operations of an openapi"),
    ],
)
def test_names_that_cannot_be_meant_are_refused(section: Json, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Config.model_validate(section)

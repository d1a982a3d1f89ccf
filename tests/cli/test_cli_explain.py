"""Why an agent has a tool, or has not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli_kit import Project, Toolgrove
from faults.kit import fake
from pool.mcp.test_prompts import SAID as PROMPTS
from pool.mcp.test_resources import SAID, faithful

AGENTS = {
    "a": {
        "role": "reader",
        "tools": ["get_*", "add_child", "fake_*", "list_available_agents", "spawn_agents", "gone"],
        "deny": ["get_path"],
        "mcp": {"fake": {"mask": ["erase"]}},
        "approve": ["fake_echo"],
    },
    "narrow": {"tools": ["*"], "mcp": {}},
    "frozen": {"role": "editor", "tools": ["add_child", "list_*"], "readOnly": True},
    "empty": {},
}
SERVERS = {"fake": fake(), "dead": {"command": "no-such-program"}}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("a get_node", "a has get_node of workspace: granted (tools: get_*).\n"),
        (
            "a fake_echo",
            "a has fake_echo of fake: granted (tools: fake_*). Each call needs an approval (approve: fake_echo).\n",
        ),
        (
            "a get_path",
            "a does not have get_path of workspace: denied (deny: get_path). "
            "Take 'get_path' out of agents.a.deny: deny beats everything.\n",
        ),
        (
            "a search",
            "a does not have search of workspace: denied (no pattern in tools names it). "
            "Add 'search', or a glob that covers it, to agents.a.tools.\n",
        ),
        (
            "a remove_node",
            "a does not have remove_node of workspace: denied (no pattern in tools names it). "
            "Add 'remove_node', or a glob that covers it, to agents.a.tools. "
            "It changes something, so agents.a also needs 'role: editor'.\n",
        ),
        (
            "a add_child",
            "a does not have add_child of workspace: restricted (role 'reader': the tool changes something). "
            "Write 'role: editor' in agents.a to let it change things.\n",
        ),
        (
            "frozen add_child",
            "frozen does not have add_child of workspace: restricted (read-only mode: the tool changes something). "
            "Take 'readOnly: true' out of agents.frozen.\n",
        ),
        (
            "a fake_erase",
            "a does not have fake_erase of fake: masked (mcp.fake.mask: erase). "
            "Take 'erase' out of agents.a.mcp.fake.mask.\n",
        ),
        (
            "narrow fake_echo",
            "narrow does not have fake_echo of fake: denied (mcp does not select server 'fake'). "
            "Add 'fake: {}' to agents.narrow.mcp, or leave mcp out to select every server.\n",
        ),
        (
            "frozen list_available_agents --depth 1",
            "frozen does not have list_available_agents of coordination: restricted (a sub-agent has it only if tools "
            "lists 'spawn_agents' by its exact name). "
            "Write 'spawn_agents' itself in agents.frozen.tools: a glob is not enough.\n",
        ),
        (
            "a spawn_agents --depth 2",
            "a does not have spawn_agents of coordination: restricted (maxDepth 2 is reached at depth 2). "
            "Raise agents.a.maxDepth if it should still spawn agents at this depth.\n",
        ),
    ],
)
def test_one_tool_is_explained_with_the_rule_and_what_to_change(
    toolgrove: Toolgrove, project: Project, words: str, told: str
) -> None:
    project(mcpServers={"fake": fake()}, agents=AGENTS)
    said = toolgrove("explain", *words.split())
    assert (said.code, said.out, said.err) == (0, told, "")


def test_a_tool_that_is_not_there_gets_a_suggestion_or_the_server_that_is_missing(
    toolgrove: Toolgrove, project: Project
) -> None:
    project(mcpServers=SERVERS, agents=AGENTS)
    near = toolgrove("explain", "a", "get_nod")
    assert (near.code, near.err) == (1, "toolgrove: There is no tool 'get_nod'. Did you mean 'get_node'?\n")
    dead = toolgrove("explain", "a", "dead_search")
    assert dead.code == 1
    assert "dead is unavailable, so its tools are not known: the server did not start" in dead.err
    nobody = toolgrove("explain", "b")
    assert "No agent 'b' is defined; agents: a, narrow, frozen, empty." in nobody.err


def test_a_tool_whose_server_died_or_offers_nonsense_is_explained(
    toolgrove: Toolgrove, project: Project, tmp_path: Path
) -> None:
    offer = tmp_path / "tools.json"
    good = {"name": "echo", "description": "Say it again.", "inputSchema": {"type": "object"}}
    offer.write_text(json.dumps([good, good | {"name": "odd", "inputSchema": {"type": "nonsense"}}]))
    project(mcpServers={"up": fake("file", option=offer)}, agents={"a": {"tools": ["*"]}})
    odd = toolgrove("explain", "a", "up_odd").out
    assert odd.startswith("a does not have up_odd of up: unvalidated (")
    assert odd.endswith(" It becomes available once its source offers a valid definition.\n")
    project(mcpServers={"up": {"command": "no-such-program"}}, agents={"a": {"tools": ["*"]}})
    dead = toolgrove("explain", "a", "up_echo").out
    assert dead.startswith("a does not have up_echo of up: unavailable (the server did not start")
    assert dead.endswith(" It comes back by itself when 'up' answers; 'toolgrove doctor' says what is wrong.\n")


def test_the_whole_receipt_begins_with_what_is_wrong(toolgrove: Toolgrove, project: Project) -> None:
    project(mcpServers=SERVERS, agents=AGENTS)
    lines = toolgrove("explain", "a", "--all").out.splitlines()
    assert lines[0].startswith("a, depth 0: ")
    warned = [line for line in lines if line.startswith("!")]
    assert warned[0] == "! Agent 'a' lists tool 'gone', which is not in the pool; it is skipped."
    assert warned[1].startswith("! dead is unavailable: ")
    rows = {line.split()[1]: line.split()[0] for line in lines[5 : lines.index("", 5)]}
    assert (rows["get_node"], rows["fake_erase"], rows["search"]) == ("granted", "masked", "denied")


def test_machines_get_the_receipt_itself(toolgrove: Toolgrove, project: Project) -> None:
    project(mcpServers={"fake": fake()}, agents=AGENTS)
    receipt: Any = toolgrove("explain", "a", "--json").json
    denied = {"verdict": "denied", "rule": "deny: get_path", "source": "workspace", "ancestor": None, "approval": None}
    assert receipt["tools"]["get_path"] == denied
    one = toolgrove("explain", "a", "fake_echo", "--json").json
    assert (one["verdict"], one["approval"], one["hash"]) == ("granted", "approve: fake_echo", receipt["hash"])


DELEGATING = {
    "boss": {"tools": ["get_node", "spawn_agents"], "mayDelegate": ["add_child"], "maySpawn": ["lead", "helper"]},
    "lead": {"role": "editor", "tools": ["get_node", "spawn_agents"], "mayDelegate": ["search"]},
    "helper": {"role": "editor", "tools": ["get_node", "add_child", "search"]},
    "other": {"tools": ["*"]},
    "careful": {"role": "editor", "tools": ["*"], "approve": ["add_*"]},
}


def test_a_sub_agent_is_explained_with_the_ancestor_that_took_a_tool_away(
    toolgrove: Toolgrove, project: Project
) -> None:
    project(agents=DELEGATING)
    lent = toolgrove("explain", "helper", "add_child", "--within", "boss").out
    assert lent == (
        "helper within boss does not have add_child of workspace: restricted "
        "(role 'reader' of agent 'boss': the tool changes something). "
        "Write 'role: editor' in agents.boss to let it change things.\n"
    )
    deeper = toolgrove("explain", "helper", "search", "--within", "boss", "--within", "lead", "--json").json
    assert (deeper["chain"], deeper["depth"]) == (["boss", "lead", "helper"], 2)
    assert (deeper["verdict"], deeper["ancestor"]) == ("restricted", "boss")
    assert deeper["advice"] == (
        "Add it to agents.boss.tools, or to agents.boss.mayDelegate, which lends the name alone."
    )
    asked = toolgrove("explain", "helper", "add_child", "--within", "careful").out
    assert "Each call needs an approval (approve: add_* of agent 'careful')." in asked
    whole = toolgrove("explain", "helper", "--within", "boss").out
    assert whole.startswith("helper within boss, depth 1: 1 of ")


def test_who_may_not_be_started_is_told_so(toolgrove: Toolgrove, project: Project) -> None:
    project(agents=DELEGATING)
    said = toolgrove("explain", "other", "--within", "boss")
    assert (said.code, said.err) == (1, "toolgrove: boss may not spawn other. Name 'other' in agents.boss.maySpawn.\n")
    through = toolgrove("explain", "other", "--within", "boss", "--within", "lead")
    assert "boss may not spawn other" in through.err
    itself = toolgrove("explain", "lead", "--within", "lead")
    assert "lead may not spawn lead" in itself.err


def test_an_agent_without_tools_hears_about_it(toolgrove: Toolgrove, project: Project) -> None:
    project(agents=AGENTS)
    said = toolgrove("tools", "--agent", "empty")
    assert (said.code, said.out) == (0, "empty has no tools.\n")
    assert "Agent 'empty' ends up with no tools at all: its definition lists none" in said.err


def test_the_tools_of_an_agent_are_listed_as_it_sees_them(toolgrove: Toolgrove, project: Project) -> None:
    project(mcpServers={"fake": fake()}, agents=AGENTS)
    listed = toolgrove("tools", "--agent", "a", "--json").json
    names = {tool["name"] for tool in listed}
    assert {"get_node", "fake_echo", "spawn_agents"} <= names
    assert not names & {"get_path", "fake_erase", "add_child"}
    told = {"name", "description", "inputSchema", "outputSchema", "annotations", "source"}
    assert listed[0].keys() == {*told, "listed", "tokensEstimate"}
    deeper = {tool["name"] for tool in toolgrove("tools", "--agent", "a", "--depth", "2", "--json").json}
    assert names - deeper == {"spawn_agents", "list_available_agents"}
    said = toolgrove("tools", "--agent", "a", "--depth", "2")
    assert "Agent 'a' is at depth 2 of maxDepth 2: spawn_agents is removed." in said.err


def test_a_server_cannot_steer_the_terminal(toolgrove: Toolgrove, project: Project, tmp_path: Path) -> None:
    result = tmp_path / "tools.json"
    result.write_text(json.dumps([{"name": "x", "description": "hello", "inputSchema": {"type": "object"}}]))
    project(mcpServers={"fake": fake("file", option=result)}, agents={"a": {"tools": ["*"]}})
    said = toolgrove("call", "a", "fake_x", "text=\x1b[2J\u202e")
    assert said.code == 0
    assert "\x1b" not in said.out + said.err
    assert "\u202e" not in said.out + said.err
    assert "\\u202e" in said.out


def test_resources_and_prompts_are_shown_with_their_server(
    toolgrove: Toolgrove, project: Project, tmp_path: Path
) -> None:
    server = faithful(tmp_path, "n", {**PROMPTS, **SAID})
    agents = {"a": {"tools": ["get_subtree"], "resources": ["n:private://*"], "prompts": ["n_greet"]}}
    project(mcpServers={"n": server}, agents=agents, startupBudget=60)
    rows = [("template", "tree://{nodeId}", "tree"), ("template", "private://{name}", "n")]
    rows += [("resource", "private://x", "n"), ("prompt", "n_greet", "n")]
    for command in (("tools", "--agent", "a"), ("explain", "a")):
        shown = [tuple(row.split()) for row in toolgrove(*command).out.splitlines()]
        assert set(rows) <= set(shown)
    offered = toolgrove("explain", "a", "--json").json["offered"]
    assert [(one["kind"], one["address"], one["source"]) for one in offered] == rows
    said = toolgrove("doctor").out
    assert "tools, 2 templates, 1 resource, 1 prompt" in " ".join(said.split())
    assert "answered with 0 tools, " in " ".join(said.split())

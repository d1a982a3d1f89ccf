"""No sequence of spawns lets an agent do what it could not do itself, the names in mayDelegate apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grove_kit import ManualClock
from runners.scripted import Scripted, answers, made, through
from toolgrove import Config, Grove

pytestmark = pytest.mark.anyio
NAMES = ("a", "b", "c")
CHANGING = {"add_child", "remove_node"}
TREE = {
    "nodeId": "both",
    "payloadType": "T",
    "payload": {},
    "children": [{"nodeId": name, "payloadType": "T", "payload": {}} for name in ("left", "right")],
}
ADD = {"payloadType": "T", "payloadProps": {}}
ATTEMPTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get_node", {"nodeId": "root"}),
    ("add_child", {"parentNodeId": "left", **ADD}),
    ("add_child", {"parentNodeId": "right", **ADD}),
    ("remove_node", {"nodeId": "right"}),
)
PATTERNS = st.lists(st.sampled_from(["get_node", "add_*", "remove_node", "r*"]), min_size=1, max_size=2)
RESTRICTIONS: dict[str, st.SearchStrategy[Any]] = {
    "tools": PATTERNS,
    "deny": PATTERNS,
    "approve": PATTERNS,
    "mayDelegate": PATTERNS,
    "role": st.just("reader"),
    "readOnly": st.just(True),
    "writeRoot": st.sampled_from(["left", "right", "both"]),
    "rateLimit": st.sampled_from(["4/minute", "20/minute"]),
    "maySpawn": st.lists(st.sampled_from(NAMES), unique=True),
}


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    """An agent that has everything, less a few things."""
    chosen = {draw(st.sampled_from(sorted(RESTRICTIONS))) for _ in range(2)}
    agent = {"tools": ["*"], "role": "editor", **{key: draw(RESTRICTIONS[key]) for key in chosen}}
    return {**agent, "tools": [*agent["tools"], "spawn_agents"]}


CHAIN = st.permutations(NAMES) | st.lists(st.sampled_from(NAMES), min_size=2, max_size=4)


@dataclass
class Naive:
    """The intersection, written down as the rule says it."""

    agents: dict[str, dict[str, Any]]
    spent: Counter[str] = field(default_factory=Counter)

    def named(self, agent: str, key: str, tool: str) -> bool:
        return any(fnmatchcase(tool, pattern) for pattern in self.agents[agent].get(key, ()))

    def writes(self, agent: str) -> bool:
        return self.agents[agent]["role"] == "editor" and not self.agents[agent].get("readOnly", False)

    def has(self, chain: list[str], tool: str) -> bool:
        *above, agent = chain
        own = self.named(agent, "tools", tool) and not self.named(agent, "deny", tool)
        lent = all(
            self.has(chain[:at], tool) or self.named(one, "mayDelegate", tool) for at, one in enumerate(above, 1)
        )
        return own and lent and (tool not in CHANGING or all(map(self.writes, chain)))

    def spawns(self, chain: list[str], agent: str) -> bool:
        return all(agent in self.agents[one].get("maySpawn", set(NAMES) - {one}) for one in chain)

    def admits(self, chain: list[str]) -> bool:
        limited = {
            one: int(self.agents[one]["rateLimit"].split("/")[0]) for one in chain if "rateLimit" in self.agents[one]
        }
        room = all(self.spent[one] < limit for one, limit in limited.items())
        self.spent.update(set(limited) if room else ())
        return room

    def outcome(self, chain: list[str], tool: str, arguments: dict[str, Any]) -> str:
        for at in range(1, len(chain)):
            if not self.admits(chain[:at]):
                return "rate_limited"
            if not self.spawns(chain[:at], chain[at]):
                return "not_found"
        if not self.admits(chain):
            return "rate_limited"
        if not self.has(chain, tool):
            return "withheld"
        if any(self.named(one, "approve", tool) for one in chain):
            return "approval_required"
        roots = [self.agents[one]["writeRoot"] for one in chain if "writeRoot" in self.agents[one]]
        place = "both" if tool == "remove_node" else arguments.get("parentNodeId")
        if tool in CHANGING and not all(root in ("both", place) for root in roots):
            return "write_root"
        return "done"


def outcome_of(answer: dict[str, Any]) -> str:
    error = answer.get("error")
    if error is None:
        return "done"
    if error["code"] == "not_found" and "There is no tool" in error["message"]:
        return "withheld"
    if error.get("reason") in ("role", "read_only"):
        return "withheld"
    return str(error.get("reason") or error["code"])


@pytest.mark.long
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(agents=st.fixed_dictionaries(dict.fromkeys(NAMES, definitions())), chain=CHAIN)
async def test_what_comes_of_a_chain_of_spawns_is_the_intersection_of_all_its_rights(
    agents: dict[str, dict[str, Any]], chain: list[str]
) -> None:
    naive = Naive(agents)
    keeper = {"role": "editor", "tools": ["*"]}
    config = {"agents": {"keeper": keeper, **{name: {"maxDepth": 9, **agent} for name, agent in agents.items()}}}
    async with Grove(Config.model_validate(config), runner=Scripted(), clock=ManualClock()) as grove:
        planted = await made(await grove.agent("keeper"), "import_merge", {"json": TREE, "strategy": "upsert"})
        assert "error" not in planted, planted
        for length, (tool, arguments) in product(range(1, len(chain) + 1), ATTEMPTS):
            first, *onward = chain[:length]
            if tool in CHANGING:
                arguments = {**arguments, "versionToken": planted["version"], "dryRun": True}
            call = through(onward, (tool, arguments)) if onward else (tool, arguments)
            result = await (await grove.agent(first)).call(*call)
            found = answers(result, onward)[0] if onward else result
            expected = naive.outcome(chain[:length], tool, arguments)
            assert outcome_of(found) == expected, (first, onward, tool, found)

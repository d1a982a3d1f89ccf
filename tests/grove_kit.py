"""What the tests of the tree workspace share: a hand that keeps its version, a clock that obeys."""

from __future__ import annotations

import copy
import json
from typing import Any

from toolgrove import Agent, Config, Grove
from toolgrove.call.bodies import BodyWriter
from toolgrove.pool.secrets import Secrets
from toolgrove.tools import DECLARATIONS
from toolgrove.tools.sample import DOCUMENT, RULESETS


class ManualClock:
    """Time that moves only when told."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def wall(self) -> float:
        return 1_800_000_000.0 + self.now

    def monotonic(self) -> float:
        return self.now


def recording(secrets: Secrets | None = None) -> BodyWriter:
    """Records the whole of every call."""
    return BodyWriter(secrets or Secrets({}), policy=lambda agent, tool: "full", size=lambda: 16 * 1024)


class Hand:
    """An agent that always sends its latest version, as a careful client would."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    async def version(self) -> str:
        answer = await self.agent.call("get_node", {"nodeId": "root"})
        return str(answer["version"])

    async def __call__(self, name: str, **arguments: Any) -> dict[str, Any]:
        if DECLARATIONS[name].mutates and "versionToken" not in arguments:
            arguments["versionToken"] = await self.version()
        return await self.agent.call(name, arguments)

    async def ok(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = await self(name, **arguments)
        assert "error" not in answer, answer
        json.dumps(answer)
        return answer

    async def refused(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = await self(name, **arguments)
        assert "error" in answer, answer
        error: dict[str, Any] = answer["error"]
        return error

    async def tree(self) -> str:
        return str((await self.ok("export_subtree", nodeId="root"))["json"])


def config(**sections: Any) -> Config:
    """A configuration in which every agent has every tool."""
    agents = sections.pop("agents", {"editor": {"role": "editor"}, "reader": {"role": "reader"}})
    return Config.model_validate(
        {
            "agents": {name: {"tools": ["*"], **agent} for name, agent in agents.items()},
            "workspace": sections.pop("workspace", {"rulesets": RULESETS}),
            **sections,
        }
    )


async def hand(grove: Grove, name: str = "editor", session: str | None = None) -> Hand:
    return Hand(await grove.agent(name, session=session))


async def sample(settings: Config | None = None, **options: Any) -> tuple[Grove, Hand]:
    """A grove with the sample tree in it, and its editor."""
    grove = Grove(settings or config(), **options)
    editor = await hand(grove)
    await editor.ok("import_merge", json=copy.deepcopy(DOCUMENT), strategy="upsert", matchBy="nodeId")
    return grove, editor

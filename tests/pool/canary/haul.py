"""All that ever comes out of a grove, in one place, to be searched for a secret."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any
from urllib.parse import quote, quote_plus

import anyio
import pytest

from toolgrove import Agent, Config, Grove
from toolgrove.events import Event
from toolgrove.web import schemas

DEADLINE = 90.0


def spellings(key: str) -> dict[str, str]:
    """What must not be found; base64 at each alignment without the letters that its neighbours share."""
    data = key.encode()
    shapes = {
        "plain": key,
        "lower": key.lower(),
        "quoted": quote(key, safe=""),
        "quoted lower": quote(key, safe="").lower(),
        "quoted path": quote(key),
        "quoted plus": quote_plus(key),
        "quoted all": "".join(f"%{byte:02x}" for byte in data),
        "hex": data.hex(),
        "json": json.dumps(key)[1:-1],
        "json twice": json.dumps(json.dumps(key)[1:-1])[1:-1],
        "json all": "".join(f"\\u{ord(letter):04x}" for letter in key),
        "entities": "".join(f"&#{ord(letter)};" for letter in key),
        "bytes": repr(data)[2:-1],
    }
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + data)[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6].decode()
        shapes[f"base64 {shift}"] = encoded
        shapes[f"base64 url {shift}"] = encoded.translate(str.maketrans("+/", "-_"))
    return shapes


class Ear:
    """A client that keeps what it hears; pieces that follow each other are also kept as one text."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.messages.append(message or "")

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        self.messages += (message, json.dumps(schema))
        return None


class Haul:
    """What came out, by the way it came."""

    def __init__(self, grove: Grove, agent: Agent, logged: pytest.LogCaptureFixture) -> None:
        self.grove, self.agent = grove, agent
        self.texts: list[tuple[str, str]] = []
        self.events: list[Event] = []
        self._logged = logged

    def keep(self, way: str, *values: Any) -> None:
        """Keep a value as text, as JSON, and as a program would print it."""
        for value in values:
            self.texts.append((way, value if isinstance(value, str) else json.dumps(value, default=repr)))
            self.texts.append((way, repr(value)))

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool in both ways there are, and keep everything."""
        ear = Ear()
        call = self.agent.begin(tool, arguments, ear)
        result = await self.agent.send(call)
        self.keep(f"result of {tool}", result, call.error)
        self.keep(f"content of {tool}", "".join(_texts(result.get("content"))))
        self.keep(f"progress of {tool}", ear.messages, "".join(ear.messages))
        return result

    async def stream(self, tool: str, **arguments: Any) -> None:
        """Call a tool in a run."""
        told = [event async for event in self.agent.run([{"tool": tool, "arguments": arguments}])]
        self.keep(f"events of {tool}", told, "".join(str(event.get("message", "")) for event in told))

    async def gather(self) -> None:
        """All that can be asked for afterwards."""
        grove = self.grove
        agent = await grove.agent(self.agent.name)
        self.keep(
            "tools", [asdict(spec) for spec in agent.tools], agent.openai_tools(), agent.openai_tools(strict=True)
        )
        self.keep("receipt", schemas.Receipt.of(agent.receipt).to_json())
        self.keep("snapshot", [repr(offer) for offer in grove.pool.latest.offers.values()])
        self.keep("events", [event.to_json() for event in self.events])
        self.keep("audit", *grove.audit.lines())
        self.keep("approvals", [asdict(approval) for approval in await grove.approvals.list()])
        self.keep("pins", [asdict(pin) for pin in grove.pins.list()], [pin.diff() for pin in grove.pins.list()])
        self.keep("config", repr(grove.config), grove.config.model_dump_json(), repr(grove.secrets))
        for record in self._logged.records:
            self.keep("log", logging.Formatter("%(name)s %(message)s").format(record), record.__dict__)
        self.keep("log in a row", "".join(record.getMessage() for record in self._logged.records))

    def found(self, key: str) -> list[str]:
        """Where a secret stands, and how it is spelt."""
        shapes = spellings(key)
        return sorted(
            {
                f"{way}: {shape}: …{text[max(0, text.find(spelt) - 60) : text.find(spelt) + 60]}…"
                for way, text in self.texts
                for shape, spelt in shapes.items()
                if spelt in text
            }
        )

    def marked(self, way: str) -> bool:
        """Whether a secret was taken out somewhere on that way."""
        return any(kept == way and "[secret " in text for kept, text in self.texts)


def _texts(content: Any) -> list[str]:
    return [str(block.get("text", "")) for block in content] if isinstance(content, list) else []


@asynccontextmanager
async def hauling(sections: dict[str, Any], logged: pytest.LogCaptureFixture, **options: Any) -> AsyncIterator[Haul]:
    """A grove whose every word is kept; asyncio's own debug words are not ours."""
    logged.set_level(logging.DEBUG)
    agents = {"agents": {"a": {"role": "editor", "tools": ["*"]}}, "startupBudget": 20}
    with anyio.fail_after(DEADLINE):
        async with Grove(Config.model_validate({**agents, **sections}), **options) as grove:
            haul = Haul(grove, await grove.agent("a"), logged)
            grove.listen(haul.events.append)
            yield haul

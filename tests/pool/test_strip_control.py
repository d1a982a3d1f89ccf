"""Characters that nobody sees, in all that a foreign tool says: passed on as they are, or taken out and marked so."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client

from faults.kit import fake
from pool.canary.haul import Ear
from toolgrove import Config, Grove
from toolgrove.mcp_face import mcp_endpoint
from toolgrove.notation.unseen_text import stripped
from toolgrove.store.state import OPERATOR

pytestmark = pytest.mark.anyio
HIDDEN = "\u202egpj.exe\u2066 zero\u200bwidth\ufeff \x1b[31mred\x1b]8;;http://evil.example\x07link\x9b tag\U000e0041"
SEEN = "gpj.exe zerowidth [31mred]8;;http://evil.examplelink tag"
UNSEEN = frozenset("\u202e\u2066\u200b\ufeff\x1b\x07\x9b\U000e0041")
WAYS = ("plain", "blocks_only", "fails", "fails_in_our_words")
META = {"toolgrove/changed": ["results.stripControl"]}
TATTLER = Path(__file__).with_name("canary") / "tattler.py"


@asynccontextmanager
async def telling(*, strip: bool, **sections: Any) -> AsyncIterator[Grove]:
    server = {"command": sys.executable, "args": ["-I", "-S", str(TATTLER)], "protocol": "legacy"}
    project = {
        "mcpServers": {"tattler": {**server, "env": {"KEY": HIDDEN}}},
        "agents": {"a": {"role": "editor", "tools": ["*"]}},
        "startupBudget": 20,
        **({"results": {"stripControl": True}} if strip else {}),
        **sections,
    }
    with anyio.fail_after(90):
        async with Grove(Config.model_validate(project)) as grove:
            yield grove


def hides(value: Any) -> bool:
    return bool(UNSEEN & set(json.dumps(value, ensure_ascii=False)) or r"\u001b" in json.dumps(value))


def test_stripping_leaves_what_shows() -> None:
    assert stripped(HIDDEN) == SEEN
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert stripped(f"two\n\tlines é {family}") == f"two\n\tlines é {family}"
    assert stripped("a\u200db") == "ab"


async def test_what_a_foreign_tool_says_is_passed_on_as_it_is_unless_the_operator_wants_otherwise() -> None:
    async with telling(strip=False) as grove:
        answer = await (await grove.agent("a")).call("tattler_plain")
        assert answer["structuredContent"]["key"] == HIDDEN
        assert "_meta" not in answer


@pytest.mark.parametrize("way", WAYS)
async def test_stripped_in_process(way: str) -> None:
    async with telling(strip=True) as grove:
        answer = await (await grove.agent("a")).call(f"tattler_{way}")
        assert not hides(answer)
        assert SEEN in json.dumps(answer)
        assert answer["_meta"] == META


@pytest.mark.parametrize("way", WAYS)
async def test_stripped_over_mcp(way: str) -> None:
    async with telling(strip=True) as grove, Client(mcp_endpoint(await grove.agent("a"), "1").server) as client:
        answer = await client.call_tool(f"tattler_{way}", {})
        told = answer.model_dump(mode="json", by_alias=True)
        assert not hides(told)
        assert SEEN in json.dumps(told)
        assert {key: told["_meta"][key] for key in META} == META
        assert "_meta" not in (told.get("structuredContent") or {})


async def test_stripped_in_the_events_of_a_run_over_http() -> None:
    async with telling(strip=True) as grove:
        app = grove.asgi_app()
        headers = {"Authorization": f"Bearer {grove.tokens.issue(OPERATOR)}"}
        transport = httpx2.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as http,
        ):
            calls = [{"tool": f"tattler_{way}"} for way in (*WAYS, "progresses")]
            streamed = (await http.post("/agents/a/runs", json={"calls": calls})).text
        events = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: ")]
        assert not hides(events)
        marks = [(event.get("result") or event.get("error"))["_meta"] for event in events if _has_ended(event)]
        assert marks[: len(WAYS)] == [META] * len(WAYS)


def _has_ended(event: dict[str, Any]) -> bool:
    return event["type"] in ("tool_succeeded", "tool_failed") and event["tool"] != "tattler_progresses"


async def test_progress_is_stripped_too() -> None:
    async with telling(strip=True) as grove:
        ear = Ear()
        await (await grove.agent("a")).call("tattler_progresses", client=ear)
        assert ear.messages
        assert not hides(ear.messages)


async def test_what_has_nothing_to_hide_is_not_marked_and_neither_is_the_tree() -> None:
    async with telling(strip=True) as grove:
        agent = await grove.agent("a")
        root = await agent.call("get_node", {"nodeId": "root"})
        form = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {"name": HIDDEN}}
        added = await agent.call("add_child", {**form, "versionToken": root["version"]})
        kept = await agent.call("get_node", {"nodeId": added["nodeId"]})
        assert kept["payload"]["name"] == HIDDEN
        assert "_meta" not in kept


@pytest.mark.parametrize(
    ("secret", "said"),
    [("CaNaRy7f3q9Z4xk", "\u200b".join("CaNaRy7f3q9Z4xk")), ("CaNaRy\u200b7f3q9Z4xk", "CaNaRy\u200b7f3q9Z4xk")],
    ids=["kept apart", "unseen itself"],
)
async def test_no_secret_gets_out_by_characters_that_are_stripped(
    monkeypatch: pytest.MonkeyPatch, secret: str, said: str
) -> None:
    monkeypatch.setenv("TOOLGROVE_CANARY", secret)
    servers = {"up": {**fake(), "env": {"OTHER": "${env:TOOLGROVE_CANARY}"}}}
    async with telling(strip=True, mcpServers=servers) as grove:
        answer = json.dumps(await (await grove.agent("a")).call("up_echo", {"text": f"it is {said}."}))
        assert stripped(secret) not in answer
        assert "it is [secret TOOLGROVE_CANARY]." in answer

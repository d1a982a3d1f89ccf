"""Who comes to the door is on record: wrong tokens, foreign addresses, first uses, sign-ins; a flood in few words."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2
import pytest

from grove_kit import ManualClock
from toolgrove import Config, Grove
from toolgrove.cli.serve import issue_missing
from toolgrove.store.state import OPERATOR
from toolgrove.web.arrivals import AWAY
from toolgrove.web.refusals import MINUTE, SOURCES
from toolgrove.web.slow_down import FREE, LONGEST, PAUSE
from waiting import DEADLINE, eventually
from web.gateway import PROJECT, serving, toolgrove

pytestmark = pytest.mark.anyio
KEPT: dict[str, Any] = {**PROJECT, "workspace": {**PROJECT["workspace"], "store": "sqlite:grove.db"}}


class Door:
    """A gateway in this process, to which requests come from any address."""

    def __init__(self, grove: Grove, app: Any) -> None:
        self.grove, self._app = grove, app
        self.tokens = {who: grove.tokens.issue(who, by="the test") for who in (OPERATOR, *grove.config.agents)}

    async def ask(self, path: str, token: str | None, source: str = "10.0.0.1", method: str = "GET") -> httpx2.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {self.tokens.get(token, token)}"}
        transport = httpx2.ASGITransport(app=self._app, client=(source, 4711))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as http:
            return await http.request(method, path)

    def records(self, kinds: Collection[str]) -> list[dict[str, Any]]:
        return [record for record in self.grove.audit if record.get("kind") in kinds]

    @property
    def refused(self) -> list[tuple[str, str, str, int]]:
        """Operation, agent, address and count of every record of a refused request."""
        return [
            (one["operation"], one["agent"], one["error"]["from"], one["error"]["count"])
            for one in self.records(("refused_request",))
        ]


@asynccontextmanager
async def door(clock: ManualClock | None = None) -> AsyncIterator[Door]:
    config = Config.model_validate(PROJECT)
    async with Grove(config, clock=clock or ManualClock()) as grove:
        app = grove.asgi_app()
        async with app.router.lifespan_context(app):
            yield Door(grove, app)


async def test_a_token_is_void_when_its_time_is_over_and_no_other_is_made_for_it() -> None:
    clock = ManualClock()
    async with door(clock) as at:
        for other in at.grove.tokens.holders():
            at.grove.tokens.revoke(other)
        at.tokens = {"editor": at.grove.tokens.issue("editor", by="the test", lifetime=3600)}
        assert (await at.ask("/agents/editor/receipt", "editor")).status_code == 200
        clock.now += 3599
        assert (await at.ask("/agents/editor/receipt", "editor")).status_code == 200
        clock.now += 1
        assert (await at.ask("/agents/editor/receipt", "editor")).status_code == 401
        assert "editor" not in issue_missing(at.grove)
        await at.grove.recorder.collect()
        made = [one for one in at.records(("token",)) if "until" in one["details"]]
        assert [(one["operation"], one["agent"]) for one in made] == [("token.made", "editor")]


async def test_a_wrong_token_a_foreign_address_and_a_wrong_role_are_on_record() -> None:
    async with door() as at:
        assert (await at.ask("/api/project", None)).status_code == 401
        assert (await at.ask("/agents/editor/receipt", "tg_wrong", "10.0.0.2")).status_code == 401
        assert (await at.ask("/agents/editor/receipt", "researcher")).status_code == 404
        assert (await at.ask("/agents/editor/mcp", "researcher", "10.0.0.3", "POST")).status_code == 404
        assert (await at.ask("/agents/nobody/receipt", "editor")).status_code == 404
        assert (await at.ask("/api/audit", "researcher")).status_code == 403
        assert at.refused == [
            ("security.token_rejected", "", "10.0.0.1", 1),
            ("security.token_rejected", "", "10.0.0.2", 1),
            ("security.agent_rejected", "researcher", "10.0.0.1", 1),
            ("security.agent_rejected", "researcher", "10.0.0.3", 1),
            ("security.agent_rejected", "editor", "10.0.0.1", 1),
            ("security.role_rejected", "researcher", "10.0.0.1", 1),
        ]
        (record, *_) = at.records(("refused_request",))
        assert (record["outcome"], record["error"]["code"]) == ("refused", "unauthenticated")
        assert (record["error"]["method"], record["error"]["path"]) == ("GET", "/api/project")
        assert "tg_wrong" not in json.dumps(list(at.grove.audit))
        assert (await at.ask("/agents/editor/receipt", OPERATOR)).status_code == 200
        assert (await at.ask("/agents/nobody/receipt", OPERATOR)).status_code == 404
        assert len(at.refused) == 6


async def test_a_flood_of_wrong_tokens_costs_one_record_a_minute_and_one_line_and_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    with caplog.at_level(logging.WARNING, "toolgrove.serve"):
        async with door(clock) as at:
            for _ in range(20):
                await at.ask("/api/project", "tg_wrong")
            assert at.refused == [("security.token_rejected", "", "10.0.0.1", 1)]
            clock.now += MINUTE
            await eventually(lambda: len(at.refused) == 2)
            assert at.refused[-1] == ("security.token_rejected", "", "10.0.0.1", 19)
            counted = (await at.ask("/metrics", OPERATOR)).text
    assert 'toolgrove_refused_requests_total{cause="token"} 20.0' in counted
    assert caplog.text.count("it had no token, or one that is not good") == 1


async def test_more_sources_than_one_can_remember_share_a_record() -> None:
    async with door() as at:
        for number in range(SOURCES + 50):
            await at.ask("/api/project", None, f"10.1.{number // 250}.{number % 250}")
        assert len(at.refused) == SOURCES + 1
        assert at.refused[-1] == ("security.token_rejected", "", "others", 1)


async def test_who_guesses_tokens_waits_and_who_has_one_does_not() -> None:
    room = round(LONGEST / PAUSE)
    async with door(ManualClock()) as at:  # its time stands still, so the line does not move on
        for _ in range(FREE):
            assert (await at.ask("/api/project", "tg_wrong")).status_code == 401
        more = await asyncio.gather(*(at.ask("/api/project", "tg_wrong") for _ in range(room + 5)))
        statuses = [answer.status_code for answer in more]
        assert (statuses.count(401), statuses.count(429)) == (room, 5)
        refusal = next(answer for answer in more if answer.status_code == 429)
        assert (refusal.json()["error"]["code"], refusal.headers["Retry-After"]) == ("rate_limited", "2")
        assert (await at.ask("/api/project", OPERATOR)).status_code == 200
        assert (await at.ask("/api/project", "tg_wrong", "10.0.0.9")).status_code == 401
        assert (await at.ask("/api/project", None)).status_code == 401  # nobody guesses without a token


async def test_the_first_use_of_a_token_and_a_sign_in_are_on_record_once() -> None:
    clock = ManualClock()
    kinds = ("sign_in", "token")

    async with door(clock) as at:

        def told() -> list[tuple[str, str, Any]]:
            found = at.records(kinds)
            return [
                (one["operation"], one["agent"] or one["by"], one["details"].get("from"))
                for one in found
                if one["operation"] != "token.made"
            ]

        for _ in range(3):
            await at.ask("/agents/editor/receipt", "editor")
        await eventually(lambda: len(told()) == 1)
        for _ in range(3):
            await at.ask("/api/project", OPERATOR, "10.0.0.5")
        await eventually(lambda: len(told()) == 3)
        assert told() == [
            ("token.first_used", "editor", "10.0.0.1"),
            ("token.first_used", OPERATOR, "10.0.0.5"),
            ("sign_in", "operator", "10.0.0.5"),
        ]
        clock.now += AWAY - 1
        await at.ask("/api/project", OPERATOR, "10.0.0.5")
        clock.now += AWAY - 1
        await at.ask("/api/project", OPERATOR, "10.0.0.5")
        assert len(told()) == 3
        clock.now += AWAY
        await at.ask("/api/project", OPERATOR, "10.0.0.5")
        await at.ask("/api/project", OPERATOR, "10.0.0.6")
        await eventually(lambda: len(told()) == 5)
        assert told()[3:] == [("sign_in", "operator", "10.0.0.5"), ("sign_in", "operator", "10.0.0.6")]


async def test_what_the_command_line_does_meanwhile_is_on_record_within_seconds(tmp_path: Path) -> None:
    with serving(tmp_path, KEPT) as gateway:

        async def command(*words: str) -> Any:
            line = toolgrove(*words, "--config", str(gateway.file), "--json")
            done = await anyio.to_thread.run_sync(
                lambda: subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE, check=True)
            )
            return json.loads(done.stdout)

        async def listed(operation: str) -> list[dict[str, Any]]:
            """As another process reads the store, so that no request makes the gateway look."""
            found: list[dict[str, Any]] = await command("audit", "list", "--tool", operation)
            return found

        made = await command("tokens", "new", "researcher")

        async def is_made() -> bool:
            return any(record["by"] != "toolgrove serve" for record in await listed("token.made"))

        await eventually(is_made)
        gateway.tokens["researcher"] = made["token"]
        async with gateway.http("researcher") as http:
            for _ in range(2):
                assert (await http.get("/agents/researcher/receipt")).status_code == 200

        async def is_used() -> bool:
            return len(await listed("token.first_used")) == 1

        await eventually(is_used)
        await command("tokens", "revoke", "researcher")

        async def is_revoked() -> bool:
            return len(await listed("token.revoked")) == 2  # a new one had made the old one void

        await eventually(is_revoked)
        assert (await command("audit", "verify"))["whole"] is True
        assert made["token"] not in json.dumps(await command("audit", "list"))

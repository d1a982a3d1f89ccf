"""THREATS A1: whom the edge refuses is on record, in few words, and a flood of strangers cannot fill the log."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from e2e.edge import FOREIGN_HOSTS, FOREIGN_ORIGINS, raw
from e2e.servers import Address
from e2e.wire import call_body, modern_headers
from grove_kit import ManualClock
from mcp_serve.http_server import run_http
from mcp_serve.signals import Stop
from toolgrove import Config, Grove
from toolgrove.web.refusals import LENGTH, MINUTE
from waiting import DEADLINE, eventually
from web.gateway import PROJECT, Gateway, serving, toolgrove

pytestmark = pytest.mark.anyio
ADD = call_body("add_child", {"parentNodeId": "root", "payloadType": "Note"})
KEPT: dict[str, Any] = {**PROJECT, "workspace": {**PROJECT["workspace"], "store": "sqlite:grove.db"}}
SECRET = "the-key-of-the-shop-4711"


def knock(address: Address, host: str, *more: tuple[str, str], path: str = "agents/editor/mcp") -> int:
    headers = [("Host", host), *modern_headers("tools/call", "add_child").items(), *more]
    return raw(address, "POST", path, ADD, headers)[0]


async def records(gateway: Gateway, operation: str) -> list[dict[str, Any]]:
    async with gateway.http("operator") as http:
        items: list[dict[str, Any]] = (await http.get("/api/audit", params={"tool": operation})).json()["items"]
        return items


def command(gateway: Gateway, *words: str) -> Any:
    line = toolgrove("audit", *words, "--config", str(gateway.file), "--json")
    done = subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE, check=True)
    return json.loads(done.stdout)


async def test_a_refused_host_and_origin_are_in_the_audit_log_and_ran_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, KEPT) as gateway:
        address, token = gateway.address("editor"), [*gateway.headers("operator").items()]
        own = f"127.0.0.1:{gateway.port}"
        assert knock(address, "evil.com", *token) == 421
        assert knock(address, own, ("Origin", "http://evil.com"), *token) == 403
        assert await records(gateway, "add_child") == []
        (by_host,) = await records(gateway, "security.host_rejected")
        assert (by_host["agent"], by_host["outcome"], by_host["targets"]) == ("", "refused", ["evil.com"])
        facts = by_host["error"]
        assert (facts["host"], facts["method"], facts["path"]) == ("evil.com", "POST", "/agents/editor/mcp")
        assert (facts["from"], facts["count"]) == ("127.0.0.1", 1)
        (by_origin,) = await records(gateway, "security.origin_rejected")
        assert by_origin["error"]["origin"] == "http://evil.com"
        shown = {record["operation"]: record for record in command(gateway, "list", "--outcome", "refused")}
        assert shown == {"security.host_rejected": by_host, "security.origin_rejected": by_origin}
        assert command(gateway, "list", "--outcome", "refused", "--tool", "security.host_rejected") == [by_host]
        assert command(gateway, "verify")["whole"] is True
        async with gateway.http("operator") as http:
            shallow, deep = [(await http.get(f"/api/audit/verify{query}")).json() for query in ("", "?deep=1")]
            assert (shallow["whole"], shallow["tree"]) == (True, None)
            assert (deep["tree"]["whole"], deep["tree"]["served"]) == (True, 1)
            assert command(gateway, "verify", "--deep")["tree"] == deep["tree"]
            table = (await http.get("/api/audit/export?format=csv")).text
            *_, last = (await http.get("/api/audit/export?limit=1")).text.splitlines()
        assert json.loads(last) == {"publicKey": command(gateway, "key")["key"]}
        assert "security.host_rejected" in table
        assert not [text for text in gateway.tokens.values() if text in json.dumps([by_host, by_origin])]


async def test_who_is_welcome_leaves_no_record_of_a_refusal(gateway: Gateway) -> None:
    address, token = gateway.address("editor"), [*gateway.headers("operator").items()]
    own = f"127.0.0.1:{gateway.port}"
    assert knock(address, own, ("Origin", f"http://{own}"), *token) == 200
    assert knock(address, own) == 401
    assert raw(address, "POST", "agents/editor/mcp", [ADD], [("Host", own), *token])[0] == 400
    assert await records(gateway, "security.host_rejected") == []
    assert await records(gateway, "security.origin_rejected") == []


@asynccontextmanager
async def served(grove: Grove) -> AsyncIterator[Address]:
    """A grove of this process behind the real server."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        gateway = grove.gateway()
        async with gateway.app.router.lifespan_context(gateway.app), anyio.create_task_group() as tasks:
            stop = Stop()
            tasks.start_soon(run_http, gateway.app, gateway.drain, listening, stop)
            yield Address(port=listening.getsockname()[1])
            stop.set()


async def knocks(address: Address, hosts: list[str], *more: tuple[str, str]) -> list[int]:
    def all_of() -> list[int]:
        return [knock(address, host, *more) for host in hosts]

    return await anyio.to_thread.run_sync(all_of)


def noted(grove: Grove, operation: str = "security.host_rejected") -> list[dict[str, Any]]:
    return [record for record in grove.audit if record["operation"] == operation]


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_a_flood_leaves_one_record_a_minute_and_the_next_one_counts_the_rest(tmp_path: Path, store: str) -> None:
    clock = ManualClock()
    settings = {"store": f"sqlite:{tmp_path / 'grove.db'}"} if store == "sqlite" else {}
    config = Config.model_validate({"workspace": settings, "agents": {"editor": {"role": "editor"}}})

    async def counts(grove: Grove) -> list[int]:
        assert (await grove.audit_log.verify()).breach is None
        return [record["error"]["count"] for record in noted(grove)]

    async with Grove(config, clock=clock) as grove, served(grove) as address:
        assert set(await knocks(address, ["evil.com"] * 30)) == {421}
        assert await counts(grove) == [1]
        clock.now += MINUTE - 1
        await knocks(address, ["later.com"])
        assert await counts(grove) == [1]
        clock.now += 1
        await eventually(lambda: len(noted(grove)) == 2)
        assert await counts(grove) == [1, 30]
        assert noted(grove)[-1]["error"]["host"] == "later.com"
        await knocks(address, ["latest.com"])
        assert await counts(grove) == [1, 30]
    assert [record["error"]["count"] for record in noted(grove)] == [1, 30, 1]  # told when the gateway ends


async def test_a_flood_of_one_kind_does_not_hide_the_other() -> None:
    async with Grove(Config(), clock=ManualClock()) as grove, served(grove) as address:
        await knocks(address, ["evil.com"] * 15)
        await knocks(address, [f"127.0.0.1:{address.port}"], ("Origin", "null"))
        assert len(noted(grove, "security.origin_rejected")) == 1


async def test_what_strangers_say_is_short_printable_and_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    config = Config.model_validate({"secrets": {"SHOP_KEY": {"tools": ["*"]}}})
    padding = "a" * (LENGTH - 8)
    strange = [*FOREIGN_HOSTS, "x" * 50_000, padding + SECRET, f"{SECRET}.evil.com"]
    clock = ManualClock()
    async with Grove(config, clock=clock) as grove, served(grove) as address:
        for host in strange:
            clock.now += MINUTE
            assert (await knocks(address, [host]))[0] in (400, 421), host
        for origin in [*FOREIGN_ORIGINS, SECRET]:
            clock.now += MINUTE
            assert await knocks(address, [f"127.0.0.1:{address.port}"], ("Origin", origin)) == [403], origin
        hosts, origins = noted(grove), noted(grove, "security.origin_rejected")
        assert (len(hosts), len(origins)) == (len(strange), len(FOREIGN_ORIGINS) + 1)
        for record in (*hosts, *origins):
            said = record["error"].get("host", record["error"].get("origin"))
            assert len(said) <= LENGTH
            assert said.isascii()
            assert not said or said.isprintable()
            assert SECRET[:8] not in json.dumps(record)
        assert hosts[-1]["error"]["host"] == "[secret SHOP_KEY].evil.com"
        assert (await grove.audit_log.verify()).breach is None


async def test_a_store_that_cannot_take_the_record_does_not_let_anybody_in(caplog: pytest.LogCaptureFixture) -> None:
    class Full:
        def write(self, sealed: object) -> None:
            raise OSError(28, "No space left on device")

    async with Grove(Config(), audit_sinks=[Full()]) as grove, served(grove) as address:
        assert await knocks(address, ["evil.com"]) == [421]
    assert "security.host_rejected" in caplog.text

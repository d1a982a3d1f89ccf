"""A server gets what it was given: no variable of ours, no header of a caller, no secret of another."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

from pool.mcp.mcp_kit import Journal, over_http, over_stdio, ready, running, script
from toolgrove.config import SecretConfig
from toolgrove.pool.mcp.child import INHERITED
from toolgrove.pool.offer import Unavailable
from toolgrove.pool.offspring import MARK

pytestmark = pytest.mark.anyio


async def test_a_child_gets_only_its_own_environment(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_OWN_TOKEN", "nobody's business")
    monkeypatch.setenv("LC_NUMERIC", "C")
    config = over_stdio(journal, env={"ITS_OWN": "yes", "ITS_KEY": "${env:KEY}"})
    async with ready(config, environ={"KEY": "canary-value-8f3a", "OTHER": "not for it"}) as hand:
        told = json.loads(await hand.text("environment"))
    assert told["ITS_OWN"] == "yes"
    assert told["ITS_KEY"] == "[secret KEY]", "it had the value, and we do not pass it on"
    assert "PATH" in told
    # The interpreter adds one by itself where the locale is plain C.
    allowed = {*INHERITED, "ITS_OWN", "ITS_KEY", "LC_CTYPE", MARK} | {
        name for name in os.environ if name.startswith("LC_")
    }
    assert set(told) <= allowed


async def test_a_secret_in_a_header_reaches_the_server_and_nothing_else(
    shared_web: tuple[int, Path], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    port, path = shared_web
    journal = Journal(path)
    config = over_http(port, headers={"Authorization": "Bearer ${env:KEY}", "X-Plain": "as it is"})
    async with ready(config, environ={"KEY": "canary-value-8f3a"}) as hand:
        assert await hand.text("echo", text="canary-value-8f3a") == "[secret KEY]"
        offers = repr(hand.offers)
    for _, headers in journal.requests():
        assert headers["authorization"] == "Bearer canary-value-8f3a"
        assert headers["x-plain"] == "as it is"
    assert "canary" not in offers
    assert "canary" not in caplog.text


async def test_a_header_of_the_protocol_cannot_be_set_from_the_settings(shared_web: tuple[int, Path]) -> None:
    port, path = shared_web
    journal = Journal(path)
    async with ready(over_http(port, headers={"Host": "evil.example", "Content-Length": "0", "Accept": "x/y"})) as hand:
        assert await hand.text("echo", text="fine") == "fine"
    for _, headers in journal.requests():
        assert headers["host"] == f"127.0.0.1:{port}"
        assert "x/y" not in headers["accept"]


async def test_a_secret_that_is_meant_for_others_is_not_read() -> None:
    scopes = {"KEY": SecretConfig(tools=("shop_*",))}
    async with running(
        script("", env={"K": "${env:KEY}"}), environ={"KEY": "canary-value-8f3a"}, scopes=scopes
    ) as hand:
        with pytest.raises(Unavailable) as told:
            await hand.source.discover()
    assert "mcpServers.up.env.K is not meant for this server" in str(told.value)
    assert "canary" not in str(told.value)


NOISY = """
import json, os, sys
print(os.environ["KEY"], "\\x1b[31mred\\x07", file=sys.stderr)
print("x" * 100_000, file=sys.stderr)
for number in range(10_000):
    print("line", number, file=sys.stderr, flush=False)
sys.stderr.flush()
for line in sys.stdin:
    message = json.loads(line)
    result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "tools": []}
    if "id" in message: print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


async def test_what_a_server_complains_about_is_logged_scrubbed_and_bounded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="toolgrove.pool")
    environ = {"KEY": "canary-value-8f3a"}
    async with running(script(NOISY, env={"KEY": "${env:KEY}"}), environ=environ) as hand:
        await hand.source.discover()
    lines = [record.getMessage() for record in caplog.records]
    assert "server up: [secret KEY]  [31mred" in lines
    assert "canary" not in caplog.text
    assert all(len(line) < 2_100 and line.isprintable() for line in lines)
    assert len(lines) < 200
    assert any("more lines were dropped" in line for line in lines)


async def test_a_stray_print_before_the_first_answer_does_no_harm() -> None:
    greeting = 'print("Starting up...")\nprint("[INFO] ready")\nprint({"a": 1})\nprint()\n'
    code = greeting + NOISY.replace('print(os.environ["KEY"]', 'print("nothing"').replace("10_000", "1")
    async with running(script(code)) as hand:
        assert await hand.source.discover() == []

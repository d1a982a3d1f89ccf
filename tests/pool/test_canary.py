"""A secret with a recognisable value, used by tools that fail in every way they can: it comes out nowhere."""

from __future__ import annotations

import base64
import logging
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from modules import registry_of
from pool.canary.echo import WAYS, echo
from pool.canary.haul import Haul, hauling, spellings
from pool.canary.tattler import TELLING
from toolgrove.pool.secrets import Secrets

pytestmark = pytest.mark.anyio
KEY = 'CaNaRy/7f+3q&9Z%4~"x=k'
TATTLER = Path(__file__).with_name("canary") / "tattler.py"


@pytest.fixture(autouse=True)
def _set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGROVE_CANARY", KEY)


def test_the_search_finds_every_spelling(caplog: pytest.LogCaptureFixture) -> None:
    haul = Haul(None, None, caplog)  # type: ignore[arg-type]
    for shape, spelt in spellings(KEY).items():
        haul.texts = [("somewhere", f"before {spelt} after")]
        assert any(f"somewhere: {shape}:" in place for place in haul.found(KEY))
    haul.texts = [("somewhere", base64.b64encode(b"user:" + KEY.encode() + b";").decode())]
    assert haul.found(KEY)


@pytest.mark.requirement("CALL-003-06")
async def test_no_secret_comes_out_of_a_server_over_stdio(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    server = {
        "command": sys.executable,
        "args": ["-I", "-S", str(TATTLER)],
        "env": {"KEY": "${env:TOOLGROVE_CANARY}"},
        "protocol": "legacy",
    }
    state = {"state": str(tmp_path / "state")}
    async with hauling({"mcpServers": {"tattler": server}, **state}, caplog) as haul:
        for way in TELLING:
            await haul.call(f"tattler_{way}")
            await haul.stream(f"tattler_{way}")
        assert haul.agent.receipt["tattler_described"].verdict == "granted"
        failed = await haul.call("tattler_crashes")
        assert "error" in failed
        await _until(haul, "tattler_plain", "granted")  # it is started again, with another definition of one tool
        await haul.gather()
        assert haul.found(KEY) == []
        for way in ("plain", "blocks_only", "encoded", "fails", "fails_in_our_words"):
            assert haul.marked(f"result of tattler_{way}"), way
        for way in ("content of tattler_split", "progress of tattler_progresses", "log", "tools", "pins", "receipt"):
            assert haul.marked(way), way
    for file in (tmp_path / "state").rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert not [shape for shape, spelt in spellings(KEY).items() if spelt.encode() in data], file


async def _until(haul: Haul, tool: str, verdict: str) -> None:
    while True:
        haul.agent = await haul.grove.agent("a")
        if tool in haul.agent.receipt and haul.agent.receipt[tool].verdict == verdict:
            return
        await anyio.sleep(0.02)


async def test_no_secret_comes_out_of_a_server_over_http(caplog: pytest.LogCaptureFixture) -> None:
    async with echo() as web:
        server = {
            "url": f"http://127.0.0.1:{web.port}/mcp",
            "headers": {"Authorization": "Bearer ${env:TOOLGROVE_CANARY}"},
        }
        async with hauling({"mcpServers": {"web": server}}, caplog) as haul:
            for name in ("tell", "reject", "status", "redirect", "stream", "nonsense", "cut", "refuse"):
                await _until(haul, f"web_{name}", "granted")
                await haul.call(f"web_{name}")
                await _until(haul, f"web_{name}", "granted")
                await haul.stream(f"web_{name}")
            await haul.gather()
            assert haul.found(KEY) == []
            for way in ("result of web_tell", "result of web_reject", "progress of web_stream"):
                assert haul.marked(way), way
    assert set(web.keys) == {KEY}


async def test_no_secret_comes_out_of_an_http_tool(caplog: pytest.LogCaptureFixture) -> None:
    async with echo() as web:
        entry: dict[str, Any] = {
            "url": f"http://127.0.0.1:{web.port}/tell/{{way}}?key=${{env:TOOLGROVE_CANARY}}",
            "headers": {"Authorization": "Bearer ${env:TOOLGROVE_CANARY}"},
            "inputSchema": {"type": "object", "properties": {"way": {"type": "string"}, "note": {"type": "string"}}},
            "allowPrivate": True,
        }
        tools = {"tell": entry, "send": {**entry, "method": "POST"}}
        async with hauling({"httpTools": tools}, caplog) as haul:
            for way in WAYS:
                await haul.call("tell", way=way)
                await haul.stream("tell", way=way)
            refused = await haul.call("send", way="json", note=KEY)
            approval = refused["error"]["approvalId"]
            await haul.gather()
            await haul.grove.approvals.decide(approval, approve=True, by="grace")
            assert (await haul.call("send", way="json", note=KEY))["status"] == 200
            await haul.gather()
            assert haul.found(KEY) == []
            for way in ("result of tell", "result of send", "approvals", "events of tell"):
                assert haul.marked(way), way
    assert len(web.keys) > 2 * len(WAYS)
    assert set(web.keys) == {KEY}


class Tattling:
    """A module that knows the key from the environment of the process, as any Python code may."""

    description = "Tells."
    input_schema = {"type": "object", "properties": {"way": {"type": "string"}}}  # noqa: RUF012
    output_schema = {"type": "object"}  # noqa: RUF012

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        key = os.environ["TOOLGROVE_CANARY"]
        half = len(key) // 2
        way = inputs["way"]
        if way == "raise":
            raise RuntimeError(f"cannot use {key}")
        if way == "chain":
            try:
                raise ValueError(key)
            except ValueError as error:
                raise OSError(5, f"cannot use {key}", f"/srv/{key}") from error
        if way == "group":
            raise ExceptionGroup(f"with {key}", [ValueError(key), KeyError(key.encode())])
        if way == "log":
            logging.getLogger("somebody.else").warning("key %r", {"key": key}, extra={"other": 1})
            logging.getLogger("toolgrove.call").error("half %s%s", key[:half], key[half:])
        if way == "progress":
            send = context.data["_mcp_progress"]
            await send(1, 2, f"half {key[:half]}")
            await send(2, 2, key[half:])
        if way == "not_json":
            return {"key": key.encode()}
        return {"key": key, key: [base64.b64encode(f"user:{key}".encode()).decode()]}


async def test_no_secret_comes_out_of_a_python_module(caplog: pytest.LogCaptureFixture) -> None:
    # The value is known because the project refers to it, and declared, so even before anybody used it.
    declared: dict[str, Any] = {"secrets": {"TOOLGROVE_CANARY": {"tools": []}}}
    async with hauling(declared, caplog, extensions=registry_of({"tattling": Tattling()})) as haul:
        for way in ("tell", "raise", "chain", "group", "log", "progress", "not_json"):
            await haul.call("tattling", way=way)
            await haul.stream("tattling", way=way)
        await haul.gather()
        assert haul.found(KEY) == []
        for way in ("result of tattling", "progress of tattling", "events of tattling", "log"):
            assert haul.marked(way), way


async def test_no_secret_comes_out_of_settings_that_do_not_work(caplog: pytest.LogCaptureFixture) -> None:
    missing = f"/nowhere/{KEY}"
    sections = {
        "mcpServers": {
            "unset": {"command": "x", "env": {"A": "${env:TOOLGROVE_CANARY}", "B": "${env:TOOLGROVE_NOT_SET}"}},
            "absent": {"command": "/nowhere/${env:TOOLGROVE_CANARY}"},
            "unreadable": {"url": "http://[${env:TOOLGROVE_CANARY}]/"},
            "illegal": {"url": "http://127.0.0.1:1/", "headers": {"X": "${env:TOOLGROVE_CANARY}\u2028"}},
            "forbidden": {"command": "x", "env": {"A": "${env:TOOLGROVE_OTHER}"}},
        },
        "httpTools": {"tell": {"url": "http://127.0.0.1:1/", "headers": {"X": "${env:TOOLGROVE_CANARY}${env:NO}"}}},
        "secrets": {"TOOLGROVE_OTHER": {"tools": ["other_*"]}},
    }
    async with hauling(sections, caplog) as haul:
        await haul.call("tell")
        await haul.gather()
        assert haul.found(KEY) == []
        assert missing not in caplog.text


def test_a_secret_never_reaches_a_prompt_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    secrets = Secrets({})
    secrets.fill("${env:TOOLGROVE_CANARY}", field="f", user="t")
    sys.displayhook(secrets)
    assert KEY not in capsys.readouterr().out

"""One HTTP call as a tool: what is sent, what comes back, and what happens when the server misbehaves."""

from __future__ import annotations

import datetime
import gzip
import json
import logging
import ssl
import sys
import threading
import zlib
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.streams.tls
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from grove_kit import ManualClock
from pool.http.http_kit import (
    DEADLINE,
    Resolver,
    Seen,
    Send,
    Upstream,
    answer,
    by_path,
    call,
    failure,
    inputs,
    invoke,
    network,
    no_secrets,
    scoped,
    scrubbed,
    source,
    tools,
    upstream,
)
from toolgrove.config import HttpToolConfig
from toolgrove.errors import Forbidden, GroveError
from toolgrove.pool.http import HttpSource, Network

pytestmark = pytest.mark.anyio
KEY = "canary-7f3a91c2"


async def test_a_get_sends_its_arguments_and_returns_the_json() -> None:
    async with upstream(answer(body=b'{"id": "a/b", "price": 3}')) as server:
        get_item = source(
            "get_item",
            url=f"{server.base}/items/{{id}}",
            headers={"Authorization": "Bearer ${env:TOKEN}"},
            inputSchema=inputs("id", q={"type": "string"}),
            secrets=no_secrets(TOKEN=KEY),
        )
        result = await call(get_item, {"id": "a/b", "q": "red & blue"})
        assert result == {"status": 200, "body": {"id": "a/b", "price": 3}}
        [seen] = server.seen
        assert (seen.method, seen.target) == ("GET", "/items/a%2Fb?q=red%20%26%20blue")
        assert seen.headers["authorization"] == f"Bearer {KEY}"
        assert seen.headers["host"] == f"127.0.0.1:{server.port}"
        assert "content-length" not in seen.headers


async def test_a_post_sends_json_and_needs_an_approval() -> None:
    async with upstream(answer(201, b'{"ok": true}', location="/items/7")) as server:
        add = source("add", method="post", url=f"{server.base}/items", inputSchema=inputs("name"))
        tool = (await tools(add))["add"]
        assert (tool.mutates, tool.approval, tool.kind) == (True, "HTTP POST", "http")
        assert tool.spec.annotations.requires_approval
        result = await invoke(add, tool, {"name": "lamp"})
        assert result == {"status": 201, "body": {"ok": True}, "headers": {"location": "/items/7"}}
        assert server.seen[0].json == {"name": "lamp"}
        assert server.seen[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize("method", ["post", "PoSt", "PUT", "PATCH", "DELETE", "OPTIONS", "LINK", "QUERY"])
async def test_every_method_but_get_and_head_mutates(method: str) -> None:
    tool = (await tools(source(method=method, url="http://h/")))["t"]
    assert (tool.mutates, tool.approval) == (True, f"HTTP {method.upper()}")


@pytest.mark.parametrize("method", ["GET", "get", "HEAD", "hEaD"])
async def test_get_and_head_run_without_approval(method: str) -> None:
    tool = (await tools(source(method=method, url="http://h/")))["t"]
    assert (tool.mutates, tool.approval, tool.spec.annotations.readonly) == (False, None, True)


@pytest.mark.parametrize("method", ["POST", "QUERY", "REPORT"])
async def test_a_call_that_the_operator_calls_reading_needs_no_approval(method: str) -> None:
    tool = (await tools(source(method=method, url="http://h/", reads=True)))["t"]
    assert (tool.mutates, tool.approval, tool.spec.annotations.readonly) == (False, None, True)


async def test_nobody_says_whether_a_post_destroys_something() -> None:
    tool = (await tools(source(method="POST", url="http://h/")))["t"]
    assert (tool.spec.annotations.readonly, tool.spec.annotations.destructive) == (False, None)
    assert tool.reads_if == "httpTools.t.reads: true"
    tool = (await tools(source(method="DELETE", url="http://h/")))["t"]
    assert (tool.spec.annotations.destructive, tool.reads_if) == (True, "")


HEAD_ONLY = b"HTTP/1.1 200 X\r\ncontent-length: 5000\r\ncontent-encoding: br\r\netag: e1\r\nset-cookie: a=b\r\n\r\n"


async def test_a_head_tells_what_the_headers_say() -> None:
    async with upstream(HEAD_ONLY) as server:
        result = await call(source(method="HEAD", url=f"{server.base}/"))
        assert result == {"status": 200, "body": None, "headers": {"content-length": "5000", "etag": "e1"}}


@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "x_http_method", "X-Method-Override", "_method", "_METHOD"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_argument_cannot_change_the_method(name: str, method: str) -> None:
    async with upstream(answer()) as server:
        loose = source(
            method=method, url=f"{server.base}/", inputSchema={"type": "object"} | {"additionalProperties": True}
        )
        error = await failure(loose, {name: "DELETE"})
        assert isinstance(error, Forbidden)
        assert error.facts["reason"] == "http_policy"
        assert server.seen == []


async def test_arguments_never_become_headers() -> None:
    async with upstream(answer()) as server:
        loose = source(url=f"{server.base}/", inputSchema={"type": "object", "additionalProperties": True})
        await call(loose, {"Host": "evil", "Authorization": "x", "Cookie": "a=b", "Content-Length": "0"})
        [seen] = server.seen
        assert seen.headers["host"] == f"127.0.0.1:{server.port}"
        assert not {"authorization", "cookie", "content-length"} & set(seen.headers)


async def test_the_input_schema_is_closed_unless_it_says_otherwise() -> None:
    tool = (await tools(source(url="http://h/{id}", inputSchema=inputs("id"))))["t"]
    assert tool.spec.input_schema["additionalProperties"] is False


async def test_connections_are_kept_while_the_source_runs_and_closed_behind_it() -> None:
    async with upstream(answer()) as server:
        kept = source(url=f"{server.base}/")
        tool = (await tools(kept))["t"]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kept.run, lambda: None)
            await anyio.wait_all_tasks_blocked()
            for _ in range(3):
                await invoke(kept, tool)
            assert server.connections == 1
            tasks.cancel_scope.cancel()
        await invoke(kept, tool)
        await invoke(kept, tool)
        assert (server.connections, len(server.seen)) == (3, 5)


async def test_a_call_under_way_survives_the_end_of_its_source() -> None:
    arrived, go = anyio.Event(), anyio.Event()

    async def reply(seen: Seen, send: Send) -> None:
        arrived.set()
        await go.wait()
        await send(answer(body=b"1"))

    async with upstream(reply) as server:
        slow = source(url=f"{server.base}/")
        tool = (await tools(slow))["t"]
        results: list[Any] = []

        async def ask() -> None:
            results.append(await invoke(slow, tool))

        async with anyio.create_task_group() as calls:
            with anyio.CancelScope() as life:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(slow.run, lambda: None)
                    await anyio.wait_all_tasks_blocked()
                    calls.start_soon(ask)
                    await arrived.wait()
                    life.cancel()
            go.set()
        assert results == [{"status": 200, "body": 1}]


# What comes back


@pytest.mark.parametrize(
    ("body", "content_type", "result"),
    [
        (b"[1, 2]", "application/json; charset=utf-8", {"body": [1, 2]}),
        (b"\xef\xbb\xbf1", "application/problem+json", {"body": 1}),
        (b"hi \xff", "text/plain", {"body": "hi \ufffd", "contentType": "text/plain"}),
        (b"\xfc", "text/plain; charset=ISO-8859-1", {"body": "ü", "contentType": "text/plain"}),
        (b"\xfc", "text/plain; charset=rot13", {"body": "\ufffd", "contentType": "text/plain"}),
        (b"<a/>", "application/atom+xml", {"body": "<a/>", "contentType": "application/atom+xml"}),
        (b'{"a": 1}', "text/html", {"body": '{"a": 1}', "contentType": "text/html"}),
        (b'{"a": 1}', None, {"body": {"a": 1}}),
        (b"plain", None, {"body": "plain", "contentType": "text/plain"}),
        (b"\xff\xfe", None, {"body": None, "contentType": "application/octet-stream", "bytes": 2}),
        (b"\x89PNG\0", "image/png", {"body": None, "contentType": "image/png", "bytes": 5}),
        (b"", "application/json", {"body": None}),
        (b'"\\ud800x"', "application/json", {"body": "\ufffdx"}),
        (b'{"\\udfff": 1}', "application/json", {"body": {"\ufffd": 1}}),
        (b"12345678901234567890123", "application/json", {"body": 12345678901234567890123}),
    ],
)
async def test_an_answer_becomes_plain_json(body: bytes, content_type: str | None, result: dict[str, Any]) -> None:
    async with upstream(answer(body=body, content_type=content_type)) as server:
        assert await call(source(url=f"{server.base}/")) == {"status": 200, **result}


@pytest.mark.parametrize(
    "body",
    [
        *(b"NaN", b"[Infinity]", b"-Infinity", b"1e400", b"9" * 5000, b"[" * 150 + b"]" * 150, b"[" * 100_000),
        *(b'"\xff"', b"<html>", b'{"a":', b"\0"),
    ],
)
async def test_json_that_nobody_could_pass_on_fails_the_call(body: bytes) -> None:
    async with upstream(answer(body=body)) as server:
        error = await failure(source(url=f"{server.base}/"))
        assert (error.code, error.facts["reason"], error.retryable) == ("internal", "malformed", False)


async def test_an_announced_answer_is_held_against_its_schema() -> None:
    shape = {"type": "object", "properties": {"id": {"$ref": "#/$defs/id"}}, "$defs": {"id": {"type": "integer"}}}
    async with upstream(by_path({"/1": answer(body=b'{"id": 1}'), "/2": answer(body=b'{"id": "x"}')})) as server:
        get = source(url=f"{server.base}/{{n}}", inputSchema=inputs("n"), outputSchema=shape)
        tool = (await tools(get))["t"]
        assert tool.spec.output_schema["properties"]["body"]["type"] == "object"
        assert (await invoke(get, tool, {"n": "1"}))["body"] == {"id": 1}
        error = await failure(get, {"n": "2"})
        assert error.facts["reason"] == "output_schema"
        assert "body.id" in error.message


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "invalid_argument", False),
        (422, "invalid_argument", False),
        (404, "not_found", False),
        (410, "not_found", False),
        (409, "conflict", True),
        (401, "internal", False),
        (403, "internal", False),
        (418, "internal", False),
        (500, "internal", True),
        (503, "internal", True),
    ],
)
async def test_a_status_becomes_an_error_that_says_what_to_do(status: int, code: str, retryable: bool) -> None:
    async with upstream(answer(status, b'{"why":   "so\\n"}')) as server:
        error = await failure(source(url=f"{server.base}/"))
        assert (error.code, error.retryable) == (code, retryable)
        assert (error.facts["reason"], error.facts["status"]) == ("http_status", status)
        assert error.facts["excerpt"] == '{"why": "so\\n"}'


async def test_a_failed_write_is_never_called_retryable() -> None:
    async with upstream(answer(503)) as server:
        error = await failure(source(method="POST", url=f"{server.base}/"))
        assert not error.retryable
        assert "look first" in error.message
        assert len(server.seen) == 1


async def test_a_refused_credential_is_told_to_the_operator() -> None:
    async with upstream(answer(401)) as server:
        error = await failure(source("get_item", url=f"{server.base}/"))
        assert "httpTools.get_item.headers" in error.message


IN_A_MINUTE = format_datetime(datetime.datetime.fromtimestamp(ManualClock().wall() + 60, datetime.UTC), usegmt=True)


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("30", 30),
        (IN_A_MINUTE, 60),
        ("Mon, 01 Jan 2001 00:00:00 GMT", 1),
        ("soon", 10),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", 10),
        ("9" * 40, 10),
        ("999999999", 86400),
    ],
)
async def test_a_429_says_how_long_to_wait(told: str, seconds: float) -> None:
    async with upstream(answer(429, retry_after=told)) as server:
        error = await failure(source(url=f"{server.base}/"))
        assert (error.code, error.facts["retryAfter"], error.facts["status"]) == ("rate_limited", seconds, 429)


async def test_the_excerpt_is_short_clean_and_holds_no_binary() -> None:
    long = answer(500, b"a\r\n\x1b[31mb\x00"[:-1] + b" word" * 1000, "text/html")
    async with upstream(by_path({"/long": long, "/png": answer(500, b"\x89PNG\0", "image/png")})) as server:
        get = source(url=f"{server.base}/{{n}}", inputSchema=inputs("n"))
        excerpt = (await failure(get, {"n": "long"})).facts["excerpt"]
        assert excerpt.startswith("a [31mb word")
        assert len(excerpt) == 301
        assert "excerpt" not in (await failure(get, {"n": "png"})).facts


# Bounds


def chunked(*parts: bytes) -> bytes:
    head = b"HTTP/1.1 200 X\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


BOMB = gzip.compress(b"\0" * 50_000_000)
MEMBERS = b"".join(gzip.compress(b"x" * 400) for _ in range(4))


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 X\r\ncontent-length: 10000000000\r\n\r\nxxx",
        chunked(b"x" * 600, b"x" * 600, b""),
        b"HTTP/1.0 200 X\r\n\r\n" + b"x" * 5000,
        answer(body=BOMB, content_type="text/plain", content_encoding="gzip"),
        answer(body=gzip.compress(b"\0" * 900_000), content_type="text/plain", content_encoding="gzip"),
        answer(body=zlib.compress(b"\0" * 900_000), content_type="text/plain", content_encoding="deflate"),
        answer(body=MEMBERS, content_type="text/plain", content_encoding="x-gzip"),
        answer(500, b"x" * 5000),
    ],
)
async def test_an_answer_beyond_the_bound_is_not_read(response: bytes) -> None:
    async with upstream(response) as server:
        error = await failure(source(url=f"{server.base}/", maxBytes=1000))
        assert (error.code, error.facts["reason"], error.facts["limit"]) == ("internal", "too_large", 1000)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"x" * 400) + gzip.compress(b"x" * 600)),
        ("deflate", zlib.compress(b"x" * 1000)),
        ("deflate", zlib.compress(b"x" * 1000)[2:-4]),
        ("identity", b"x" * 1000),
    ],
    ids=["gzip twice", "zlib", "raw deflate", "identity"],
)
async def test_compressed_answers_up_to_the_bound_are_read(encoding: str, body: bytes) -> None:
    async with upstream(answer(body=body, content_type="text/plain", content_encoding=encoding)) as server:
        result = await call(source(url=f"{server.base}/", maxBytes=1000))
        assert result["body"] == "x" * 1000
        assert server.seen[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize(
    "response",
    [
        answer(body=b"not gzip", content_encoding="gzip"),
        answer(body=gzip.compress(b"x" * 5000)[:-9], content_encoding="gzip"),
        answer(body=gzip.compress(gzip.compress(b"x")), content_encoding="gzip, gzip"),
        answer(body=b"x", content_encoding="br"),
        answer(body=b"zz", content_encoding="deflate"),
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 X\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 200 X\r\nx: " + b"y" * 300_000 + b"\r\n\r\n",
        b"HTTP/1.1 101 X\r\nupgrade: tunnel\r\n\r\n",
    ],
)
async def test_an_answer_that_is_no_sound_http_fails_the_call(response: bytes) -> None:
    async with upstream(response) as server:
        error = await failure(source(url=f"{server.base}/"))
        assert (error.code, error.facts["reason"]) == ("internal", "malformed")


def cut_after(data: bytes) -> Any:
    async def reply(seen: Seen, send: Send) -> None:
        await send(data)
        raise anyio.EndOfStream

    return reply


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 X\r\n", b"HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\nab"])
async def test_a_connection_that_breaks_off_fails_the_call(data: bytes) -> None:
    async with upstream(cut_after(data)) as server:
        error = await failure(source(url=f"{server.base}/"))
        assert error.code == "internal"
        assert error.facts["reason"] in ("malformed", "disconnected")
        assert "took effect" not in error.message
        assert len(server.seen) == 1


@pytest.mark.parametrize(
    "data", [b"", b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 X\r\ncontent-length: 5000\r\n\r\nab", answer(body=b"x" * 2_000)]
)
async def test_a_changing_call_whose_answer_is_lost_says_that_its_effect_is_unknown(data: bytes) -> None:
    async with upstream(cut_after(data)) as server:
        error = await failure(source(url=f"{server.base}/", method="POST", maxBytes=1_000))
        assert "Whether it took effect is unknown" in error.message
        assert "do not retry" not in error.message
        assert not error.retryable
        assert len(server.seen) == 1


async def test_nobody_at_the_port_is_unreachable() -> None:
    async with upstream(answer()) as server:
        pass
    error = await failure(source(url=f"{server.base}/"))
    assert (error.facts["reason"], error.retryable) == ("unreachable", True)


@pytest.mark.parametrize("opening", [b"", b"HTTP/1.1 200 X\r\n", answer(body=b"x" * 50)[:-40]])
async def test_silence_and_slow_drips_end_at_the_time_bound(opening: bytes) -> None:
    async def reply(seen: Seen, send: Send) -> None:
        await send(opening)
        while opening:
            await anyio.sleep(0.01)
            await send(b"x")
        await anyio.sleep_forever()

    async with upstream(reply) as server:
        for method in ("GET", "POST"):
            error = await failure(source(method=method, url=f"{server.base}/", timeout=0.1))
            assert (error.code, error.facts["reason"], error.retryable) == ("internal", "timeout", method == "GET")


async def test_a_slow_resolver_is_within_the_time_bound() -> None:
    async def never(host: str, port: int) -> list[str]:
        await anyio.sleep_forever()
        return []

    error = await failure(source(url="http://shop.example/", timeout=0.05, network=Network(resolve=never)))
    assert error.facts["reason"] == "timeout"


# Redirects


async def test_redirects_are_followed_at_home_and_carry_the_credentials_only_there() -> None:
    hops = {
        "/1": answer(302, location="/2?x=1#part"),
        "/2?x=1": answer(307, location="3"),
        "/3": answer(body=b'"there"'),
    }
    async with upstream(by_path(hops)) as server:
        get = source(url=f"{server.base}/1", headers={"Authorization": KEY})
        assert (await call(get))["body"] == "there"
        assert [(seen.target, seen.headers["authorization"]) for seen in server.seen] == [
            ("/1", KEY),
            ("/2?x=1", KEY),
            ("/3", KEY),
        ]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_redirects_do_not_leave_the_host(method: str) -> None:
    async with upstream(answer()) as attacker:
        places = [
            attacker.base,
            f"//127.0.0.1:{attacker.port}/",
            f"http://localhost:{attacker.port}/",
            f"http://127.0.0.1@127.0.0.1:{attacker.port}/",
            "https://127.0.0.1/",
            "file:///etc/passwd",
            "http://169.254.169.254/latest",
            "/\\evil.example/",
            "http://",
            "",
            "http://[",
            "/a b",
        ]
        for place in places:
            async with upstream(answer(302, b"", location=place)) as server:
                error = await failure(source(method=method, url=f"{server.base}/", headers={"Authorization": KEY}))
                assert (error.code, error.facts["reason"]) == ("internal", "redirect"), place
                assert len(server.seen) == 1
        assert attacker.connections == 0


async def test_an_endless_chain_of_redirects_ends() -> None:
    async with upstream(answer(302, location="/")) as server:
        assert (await failure(source(url=f"{server.base}/"))).facts["reason"] == "redirect"
        assert len(server.seen) == 4


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_mutating_call_follows_no_redirect(status: int) -> None:
    async with upstream(answer(status, location="/elsewhere")) as server:
        error = await failure(source(method="POST", url=f"{server.base}/"))
        assert error.facts["reason"] == "redirect"
        assert len(server.seen) == 1


# Secrets


async def test_a_secret_that_comes_back_is_scrubbed_from_results_and_errors() -> None:
    echo = json.dumps({"token": KEY, "list": [f"x{KEY}y"], KEY: 1}).encode()
    filler = b"." * (300 - 8)
    secrets = scoped({"TOKEN": ["t"]}, TOKEN=KEY)
    async with upstream(by_path({"/ok": answer(body=echo), "/bad": answer(500, filler + KEY.encode())})) as server:
        get = source(
            url=f"{server.base}/{{n}}", headers={"X-Key": "${env:TOKEN}"}, inputSchema=inputs("n"), secrets=secrets
        )
        result = await scrubbed(get, secrets, {"n": "ok"})
        assert server.seen[0].headers["x-key"] == KEY
        assert KEY not in json.dumps(result)
        assert "[secret TOKEN]" in json.dumps(result)
        excerpt = (await failure(get, {"n": "bad"})).facts["excerpt"]
        assert KEY[:4] not in excerpt


async def test_a_secret_out_of_scope_or_unset_stops_the_call_and_names_the_field() -> None:
    async with upstream(answer()) as server:
        entry: dict[str, Any] = {"url": f"{server.base}/?k=${{env:TOKEN}}"}
        stranger = await failure(source("t", **entry, secrets=scoped({"TOKEN": ["other_*"]}, TOKEN=KEY)))
        assert (stranger.code, stranger.facts["reason"]) == ("forbidden", "secret_scope")
        unset = await failure(source("t", **entry, secrets=no_secrets()))
        assert "httpTools.t.url" in unset.message
        assert server.seen == []


async def test_a_keyring_that_a_person_must_unlock_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    unlocked = threading.Event()

    class Ring:
        def get_password(self, service: str, name: str) -> str | None:
            return KEY if unlocked.wait(DEADLINE / 2) else None

    monkeypatch.setitem(sys.modules, "keyring", Ring())
    async with upstream(answer()) as server:
        headers = {"Authorization": "Bearer ${keyring:shop}"}
        get = source("get", url=f"{server.base}/", headers=headers, inputSchema=inputs(), secrets=no_secrets())
        with anyio.fail_after(DEADLINE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call, get, {})
                await anyio.wait_all_tasks_blocked()
                unlocked.set()
        assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_reference_in_an_argument_stays_text() -> None:
    async with upstream(answer()) as server:
        get = source(url=f"{server.base}/{{a}}", inputSchema=inputs("a", "b"), secrets=no_secrets(TOKEN=KEY))
        await call(get, {"a": "${env:TOKEN}", "b": "${env:TOKEN}"})
        assert server.seen[0].target == "/%24%7Benv%3ATOKEN%7D?b=%24%7Benv%3ATOKEN%7D"
        post = source(method="POST", url=f"{server.base}/", inputSchema=inputs("b"), secrets=no_secrets(TOKEN=KEY))
        await call(post, {"b": "${env:TOKEN}"})
        assert server.seen[1].json == {"b": "${env:TOKEN}"}


@pytest.mark.parametrize("value", ["canary\r\nX-Evil: 1", "canary\x00", "canary\u20ac"])
async def test_a_secret_that_breaks_its_header_sends_nothing(value: str) -> None:
    async with upstream(answer()) as server:
        get = source(url=f"{server.base}/", headers={"X-Key": "${env:TOKEN}"}, secrets=no_secrets(TOKEN=value))
        error = await failure(get)
        assert error.facts["reason"] == "configuration"
        assert "httpTools.t.headers.X-Key" in error.message
        assert "canary" not in error.message
        assert server.seen == []


async def test_no_failure_puts_a_secret_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    responses = [answer(500), answer(302, location="http://other/"), b"nonsense\r\n\r\n", answer(body=b"NaN")]
    for response in responses:
        async with upstream(response) as server:
            get = source(
                url=f"{server.base}/?k=${{env:TOKEN}}", headers={"X-Key": "${env:TOKEN}"}, secrets=no_secrets(TOKEN=KEY)
            )
            error = await failure(get)
            assert KEY not in repr(error.to_json())
    assert KEY not in caplog.text


# TLS


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert, private = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert, private


async def test_tls_names_and_verifies_the_host_although_the_address_is_pinned(tmp_path: Path) -> None:
    cert, private = certificate(tmp_path, "shop.example")
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(cert, private)
    asked: list[str | None] = []
    server_side.sni_callback = lambda _socket, name, _context: asked.append(name)
    trusting = ssl.create_default_context(cafile=str(cert))
    outside = Network(resolve=Resolver(["127.0.0.1"]), tls=lambda: trusting)
    server = Upstream(lambda seen, send: send(answer()))
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)

    async def handle(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            try:
                wrapped = await anyio.streams.tls.TLSStream.wrap(
                    stream, server_side=True, ssl_context=server_side, standard_compatible=False
                )
            except (ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream):
                return
            await server.handle(wrapped)  # type: ignore[arg-type]

    with anyio.fail_after(DEADLINE):
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, handle)
            assert (await call(source(url=f"https://shop.example:{port}/", network=outside)))["status"] == 200
            stranger = await failure(source(url=f"https://other.example:{port}/", network=outside))
            untrusted = await failure(source(url=f"https://shop.example:{port}/", network=network(["127.0.0.1"])))
            tasks.cancel_scope.cancel()
    assert asked[:2] == ["shop.example", "other.example"]
    assert stranger.facts["reason"] == untrusted.facts["reason"] == "tls"
    assert len(server.seen) == 1


async def test_an_agent_with_a_definition_of_yesterday_is_told_so() -> None:
    async with upstream(answer()) as server:
        old = source(url=f"{server.base}/old")
        tool = (await tools(old))["t"]
        new = HttpSource("t", HttpToolConfig(url=f"{server.base}/new", allow_private=True), no_secrets())
        await new.discover()
        with pytest.raises(GroveError) as caught:
            await invoke(new, tool)
        assert caught.value.facts["reason"] == "definition_changed"
        assert server.seen == []


@pytest.mark.parametrize(
    "change",
    [
        {"url": "http://other.example/{a}"},
        {"method": "DELETE"},
        {"headers": {"X": "2"}},
        {"description": "Other."},
        {"allowPrivate": False},
        {"inputSchema": inputs("a", "b")},
    ],
)
async def test_whatever_decides_what_a_call_does_is_part_of_the_definition(change: dict[str, Any]) -> None:
    entry: dict[str, Any] = {"url": "http://h/{a}", "headers": {"X": "1"}, "inputSchema": inputs("a")}
    before, again = (await tools(source(**entry)))["t"], (await tools(source(**entry)))["t"]
    after = (await tools(source(**{**entry, **change})))["t"]
    assert before.definition == again.definition != after.definition


async def test_a_tool_that_cannot_be_offered_says_why() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"url": "http://h/../x"}, "httpTools.t.url"),
        ({"url": "http://127.1/"}, "plain IPv4"),
        (
            {"url": "http://h/", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://x/"}}}},
            "never fetched",
        ),
        ({"url": "http://h/", "description": "a\u202eb"}, "U+202E"),
    ]
    for entry, reason in wrong:
        [offer] = await source(**entry).discover()
        assert (offer.standing, offer.tool) == ("unvalidated", None)
        assert reason in offer.reason

"""The kit itself over the raw wire: a fault that does not happen would make every test of it pass."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from faults.kit import UPSTREAM, Journal, alive
from faults.proxy import Proxy
from faults.upstream import MODERN
from faults.web import ANSWERS, Web, bomb, redirect

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}


def request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


@contextmanager
def started(mode: str, journal: Path | str = "-", option: object = "") -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-I", "-S", str(UPSTREAM), mode, str(journal), str(option)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(process: subprocess.Popen[bytes], message: dict[str, Any]) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    return process.stdout.readline()


def test_the_fake_server_speaks_both_eras() -> None:
    with started("healthy") as process:
        assert MODERN in json.loads(ask(process, request(1, "server/discover")))["result"]["supportedVersions"]
        assert json.loads(ask(process, INITIALIZE))["result"]["protocolVersion"] == "2025-11-25"
        names = [tool["name"] for tool in json.loads(ask(process, request(2, "tools/list")))["result"]["tools"]]
        assert {"echo", "crash", "hang"} < set(names)
        answer = json.loads(ask(process, request(3, "tools/call", name="echo", arguments={"text": "hello"})))
        assert answer["result"]["content"] == [{"type": "text", "text": "hello"}]


def test_the_older_fake_server_does_not_know_the_newer_era() -> None:
    with started("legacy") as process:
        assert json.loads(ask(process, request(1, "server/discover")))["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("tool", "holds"),
    [
        ("bad_utf8", lambda line: b"\xff" in line),
        ("unparseable", lambda line: b"[{]" in line),
        ("nan", lambda line: b"NaN" in line),
        ("deep", lambda line: line.count(b"[") >= 100_000),
        ("neither", lambda line: b"result" not in line and b"error" not in line),
        ("wrong_id", lambda line: b"999999" in line),
        ("crash", lambda line: line == b""),
        ("exit", lambda line: line == b""),
    ],
)
def test_a_fault_of_a_call_is_on_the_wire(tool: str, holds: Any) -> None:
    with started("healthy") as process:
        assert holds(ask(process, request(1, "tools/call", name=tool, arguments={})))


def test_a_hanging_call_is_answered_once_it_is_cancelled() -> None:
    with started("healthy") as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(request(5, "tools/call", name="hang", arguments={})).encode() + b"\n")
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
        assert json.loads(ask(process, cancel))["id"] == 5


def test_the_stubborn_server_outlives_the_end_of_its_input_and_sigterm() -> None:
    with started("ignore_eof") as process:
        assert json.loads(ask(process, INITIALIZE))["id"] == 1
        assert process.stdin is not None
        process.stdin.close()
        process.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)


def test_the_grandchild_is_in_the_journal_and_outlives_its_parent(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    with started("grandchild", journal.path) as process:
        assert json.loads(ask(process, INITIALIZE))["id"] == 1
    parent, child = journal.pids
    try:
        assert parent == process.pid
        assert not alive(parent)
        assert alive(child)
    finally:
        subprocess.run(["kill", "-9", str(child)], check=True)


def post(url: str, message: dict[str, Any], **headers: str) -> httpx2.Response:
    return httpx2.post(url, json=message, headers={"mcp-protocol-version": MODERN, **headers}, timeout=0.5)


@pytest.mark.parametrize("streams", [False, True])
def test_the_web_server_answers_and_counts(streams: bool) -> None:
    with Web(streams=streams).serving() as web:
        answer = post(web.url, request(1, "tools/call", name="echo", arguments={"text": "hello"}))
        assert "hello" in answer.text
        assert answer.headers["content-type"].startswith("text/event-stream" if streams else "application/json")
        assert web.counted("tools/call") == 1


def test_the_web_server_asks_the_older_era_for_its_session() -> None:
    with Web().serving() as web:
        assert httpx2.post(web.url, json=request(1, "tools/list")).status_code == 404
        session = httpx2.post(web.url, json=INITIALIZE).headers["mcp-session-id"]
        assert httpx2.post(web.url, json=request(1, "tools/list"), headers={"mcp-session-id": session}).is_success


ODD_BUT_HTTP = {
    "status_500",
    "status_503",
    "status_401",
    "status_429",
    "html",
    "not_json",
    "empty",
    "accepted",
    "batch",
}


@pytest.mark.parametrize("fault", sorted(ANSWERS.keys() - ODD_BUT_HTTP - {"gzip_bomb", "bad_utf8", "deep"}))
def test_a_broken_answer_over_http_is_broken_for_any_client(fault: str) -> None:
    with Web(faults={"*": ANSWERS[fault]}).serving() as web, httpx2.Client(timeout=0.5) as client:
        if fault == "stream_bad_utf8":
            assert b"\xff" in client.post(web.url, json=INITIALIZE).content
            return
        if fault == "stream_ends":
            assert "jsonrpc" not in client.post(web.url, json=INITIALIZE).text
            return
        with pytest.raises((httpx2.HTTPError, EOFError)):
            read_all(client, web.url)


def read_all(client: httpx2.Client, url: str) -> None:
    """Read an answer to its end; one that is too long or comes in crumbs has none."""
    size = pieces = 0
    with client.stream("POST", url, json=INITIALIZE) as answer:
        for piece in answer.iter_bytes():
            size, pieces = size + len(piece), pieces + 1
            if size > 10_000_000 or (pieces > 5 and size < 100):
                raise EOFError


def test_the_gzip_bomb_is_small_on_the_wire() -> None:
    assert len(bomb()) < 1_000_000


def test_a_redirect_names_the_other_place() -> None:
    with Web(faults={"*": redirect("http://127.0.0.1:9/elsewhere")}).serving() as web:
        assert post(web.url, INITIALIZE).headers["location"] == "http://127.0.0.1:9/elsewhere"


def test_the_proxy_passes_on_cuts_and_resets() -> None:
    with Web().serving() as web, Proxy(target=web.port).serving() as proxy:
        url = f"http://127.0.0.1:{proxy.port}/mcp"
        assert post(url, INITIALIZE).is_success
        proxy.cut_after = 30
        with pytest.raises(httpx2.HTTPError):
            post(url, INITIALIZE)
        proxy.cut_after, proxy.blackhole = None, True
        with pytest.raises(httpx2.TimeoutException):
            post(url, INITIALIZE)
        proxy.blackhole = False
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as one:
            one.sendall(b"GET /mcp HTTP/1.1\r\n\r\n")
            assert one.recv(100).startswith(b"HTTP/1.1 405")
            proxy.reset()
            with pytest.raises(ConnectionResetError):
                one.recv(100)

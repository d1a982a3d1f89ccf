"""A fake MCP server that misbehaves on demand; the standard library only, so that it starts in a moment.

`python -I -S upstream.py MODE JOURNAL [NUMBER | FILE]`. What goes wrong at the start or in a list is a mode; what goes
wrong in a call is a tool, so that the same server can be asked afterwards whether it is still there. Every process and
every message that it receives is a line of the journal.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

Id = Any
Json = dict[str, Any]
MODERN, LEGACY = "2026-07-28", "2025-11-25"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
FOREVER = 10**9
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="


def tool(name: str, schema: Json = TEXT, **more: object) -> Json:
    return {"name": name, "description": f"The tool {name} of a test server.", "inputSchema": schema, **more}


def text(words: str, **more: object) -> Json:
    return {"content": [{"type": "text", "text": words}], **more}


class Upstream:
    """Answers messages; `put` takes the bytes of one message, without its newline."""

    def __init__(self, mode: str, journal: str, option: str, put: Callable[[bytes], object]) -> None:
        self.mode, self.option, self.put = mode, option, put
        self._journal = journal
        self.received: list[str] = []
        self.cancelled: list[Id] = []
        self.held: dict[str, Id] = {}
        self.hung: dict[Id, str] = {}
        self.asked: dict[Id, Id] = {}
        self.listening: list[Id] = []
        self.lists = 0

    def note(self, *words: object) -> None:
        if self._journal != "-":
            with open(self._journal, "a") as file:
                file.write(" ".join(map(str, words)) + "\n")

    def send(self, message: Json) -> None:
        self.put(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def reply(self, number: Id, result: Json) -> None:
        self.send({"id": number, "result": {"resultType": "complete", **result}})

    def fail(self, number: Id, code: int, message: str) -> None:
        self.send({"id": number, "error": {"code": code, "message": message}})

    def notify(self, method: str, **params: object) -> None:
        self.send({"method": method, "params": params})

    def announce(self) -> None:
        """Tell that the list changed, in both eras."""
        for number in self.listening:
            self.notify("notifications/tools/list_changed", _meta={SUBSCRIPTION: number})
        if not self.listening:
            self.notify("notifications/tools/list_changed")

    def handle(self, message: Json) -> None:
        method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method is None:
            asked = self.asked.pop(number, None)
            if asked is not None:
                self.reply(asked, text(json.dumps(message)))
            return
        self.received.append(method)
        self.note("received", method, params.get("name", ""))
        self.dispatch(method, number, params)

    def dispatch(self, method: str, number: Id, params: Json) -> None:
        if self.mode == "never_init" or (self.mode == "never_list" and method == "tools/list"):
            return
        if method == "server/discover" and self.mode != "legacy":
            versions = {"supportedVersions": [MODERN], "ttlMs": 0, "cacheScope": "private"}
            self.reply(number, {**versions, "capabilities": {"tools": {"listChanged": True}}})
        elif method == "initialize":
            self.initialize(number)
        elif method == "subscriptions/listen" and self.mode != "legacy":
            self.listening.append(number)
            wanted = {"notifications": params["notifications"], "_meta": {SUBSCRIPTION: number}}
            self.notify("notifications/subscriptions/acknowledged", **wanted)
        elif method == "tools/list":
            self.lists += 1
            getattr(self, f"list_{self.mode}", self.list_healthy)(number, params)
        elif method == "tools/call":
            name = params["name"]
            call = getattr(self, f"call_{name}", None)
            if call is None:
                self.reply(number, text(json.dumps({"tool": name, "arguments": params.get("arguments")})))
            else:
                call(number, params.get("arguments") or {}, params.get("_meta") or {})
        elif method == "notifications/cancelled":
            self.cancel(params.get("requestId"))
        elif method == "ping":
            self.reply(number, {})
        elif number is not None:
            self.fail(number, -32601, "Method not found")

    def initialize(self, number: Id) -> None:
        capabilities = {"tools": {"listChanged": True}}
        about = {"name": "fake", "version": "1"}
        self.reply(number, {"protocolVersion": LEGACY, "capabilities": capabilities, "serverInfo": about})

    def cancel(self, number: Id) -> None:
        self.cancelled.append(number)
        if number in self.hung:
            self.reply(number, text(self.hung.pop(number)))
        self.held = {key: each for key, each in self.held.items() if each != number}

    # What is offered.

    def definitions(self) -> list[Json]:
        names = [name.removeprefix("call_") for name in dir(self) if name.startswith("call_")]
        special: dict[str, Json] = {"erase": {"annotations": {"destructiveHint": True}}, "measure": {"schema": COUNT}}
        return [tool(name, **special.get(name, {})) for name in sorted(names)]

    def listed(self, number: Id, tools: list[Any], **more: object) -> None:
        self.reply(number, {"tools": tools, "ttlMs": 0, "cacheScope": "private", **more})

    def list_healthy(self, number: Id, params: Json) -> None:
        self.listed(number, self.definitions())

    def list_few(self, number: Id, params: Json) -> None:
        self.listed(number, [tool("echo")])

    def list_file(self, number: Id, params: Json) -> None:
        """The definitions in a file, as it is now."""
        with open(self.option, encoding="utf-8") as file:
            self.put(
                b'{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":' % json.dumps(number).encode()
                + json.dumps(json.load(file)).encode()
                + b',"ttlMs":0,"cacheScope":"private"}}'
            )

    def list_crash_list(self, number: Id, params: Json) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def list_dup_names(self, number: Id, params: Json) -> None:
        self.listed(number, [tool("echo"), tool("twin"), tool("twin", description="Another one.")])

    def list_cursor_loop(self, number: Id, params: Json) -> None:
        self.listed(number, [tool(f"page_{self.lists}")], nextCursor="again")

    def list_cursor_endless(self, number: Id, params: Json) -> None:
        self.listed(number, [tool(f"page_{self.lists}")], nextCursor=f"page-{self.lists}")

    def list_pages(self, number: Id, params: Json) -> None:
        page = int(params.get("cursor") or 0)
        self.listed(number, [tool(f"page_{page}")], **({"nextCursor": str(page + 1)} if page < 4 else {}))

    def list_giant_list(self, number: Id, params: Json) -> None:
        self.listed(number, [tool(f"tool_{each}") for each in range(int(self.option))])

    def list_heavy_list(self, number: Id, params: Json) -> None:
        self.listed(number, [tool("echo"), tool("heavy", description="x" * int(self.option))])

    def list_deep_list(self, number: Id, params: Json) -> None:
        nested = b'{"properties":{"x":' * 5_000 + b"{}" + b"}}" * 5_000
        self.put(
            b'{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"echo","inputSchema":%s}]}}'
            % (json.dumps(number).encode(), nested)
        )

    def list_nan_list(self, number: Id, params: Json) -> None:
        self.listed(number, [tool("echo", annotations={"weight": float("nan")})])

    def list_bad_list(self, number: Id, params: Json) -> None:
        self.reply(number, {"tools": "echo"})

    def list_odd_list(self, number: Id, params: Json) -> None:
        self.listed(number, [tool("echo"), 7, None, {"description": "nameless"}, {"name": 5}, {"name": "bare"}])

    def list_error_list(self, number: Id, params: Json) -> None:
        self.fail(number, -32603, "the list is not to be had")

    # Calls that work.

    def call_echo(self, number: Id, arguments: Json, meta: Json) -> None:
        self.reply(number, text(arguments.get("text", "")))

    def call_measure(self, number: Id, arguments: Json, meta: Json) -> None:
        count = arguments.get("count", 0)
        self.reply(number, text(json.dumps({"count": count}), structuredContent={"count": count}))

    def call_erase(self, number: Id, arguments: Json, meta: Json) -> None:
        self.reply(number, text("erased"))

    def call_image(self, number: Id, arguments: Json, meta: Json) -> None:
        self.reply(number, {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]})

    def call_journal(self, number: Id, arguments: Json, meta: Json) -> None:
        seen = {"pid": os.getpid(), "received": self.received, "cancelled": len(self.cancelled)}
        self.reply(number, text("see structuredContent", structuredContent=seen))

    def call_environment(self, number: Id, arguments: Json, meta: Json) -> None:
        self.reply(number, text("see structuredContent", structuredContent=dict(os.environ)))

    def call_announce(self, number: Id, arguments: Json, meta: Json) -> None:
        self.announce()
        self.reply(number, text("announced"))

    def call_hold(self, number: Id, arguments: Json, meta: Json) -> None:
        """Answered when `release` comes with the same text."""
        self.held[arguments.get("text", "")] = number
        self.note("holds", arguments.get("text", ""))

    def call_release(self, number: Id, arguments: Json, meta: Json) -> None:
        waiting = self.held.pop(arguments.get("text", ""), None)
        if waiting is not None:
            self.reply(waiting, text("released"))
        self.reply(number, text("released" if waiting is not None else "nobody waits"))

    # Calls that fail as calls may.

    def call_refuse(self, number: Id, arguments: Json, meta: Json) -> None:
        self.reply(number, text("the shelf is empty", isError=True))

    def call_refuse_in_our_words(self, number: Id, arguments: Json, meta: Json) -> None:
        error = {"error": {"code": "not_found", "message": "there is no such shelf", "shelf": 7}}
        self.reply(number, text(json.dumps(error), structuredContent=error, isError=True))

    def call_rpc_error(self, number: Id, arguments: Json, meta: Json) -> None:
        self.fail(number, -32000, "the shelf fell down")

    # Calls that go wrong.

    def call_crash(self, number: Id, arguments: Json, meta: Json) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def call_exit(self, number: Id, arguments: Json, meta: Json) -> None:
        os._exit(0)

    def call_close_output(self, number: Id, arguments: Json, meta: Json) -> None:
        os.close(1)
        time.sleep(FOREVER)

    def call_hang(self, number: Id, arguments: Json, meta: Json) -> None:
        """Answered only after the caller gave up."""
        self.hung[number] = arguments.get("text", "too late")
        self.note("hangs")

    def call_block(self, number: Id, arguments: Json, meta: Json) -> None:
        self.note("blocks")
        time.sleep(FOREVER)

    def call_flood(self, number: Id, arguments: Json, meta: Json) -> None:
        line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 200}}).encode()
        while True:
            self.put(line)

    def call_noise(self, number: Id, arguments: Json, meta: Json) -> None:
        """Log lines where messages belong, then the answer."""
        for _ in range(20):
            self.put(b"INFO: this is not JSON")
        self.reply(number, text("through the noise"))

    def call_bad_utf8(self, number: Id, arguments: Json, meta: Json) -> None:
        self.put(
            b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}'
            % json.dumps(number).encode()
        )

    def call_giant(self, number: Id, arguments: Json, meta: Json) -> None:
        self.reply(number, text("x" * int(arguments.get("text", "1"))))

    def call_endless(self, number: Id, arguments: Json, meta: Json) -> None:
        self.note("endless")
        with contextlib.suppress(OSError):
            while True:
                os.write(1, b"x" * 65_536)

    def call_deep(self, number: Id, arguments: Json, meta: Json) -> None:
        depth = int(arguments.get("text", "100000"))
        self.put(
            b'{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"x":%s}}}'
            % (json.dumps(number).encode(), b"[" * depth + b"]" * depth)
        )

    def call_nan(self, number: Id, arguments: Json, meta: Json) -> None:
        self.reply(number, text("n", structuredContent={"n": float("nan")}))

    def call_infinity(self, number: Id, arguments: Json, meta: Json) -> None:
        self.put(
            b'{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"n":1e400}}}'
            % json.dumps(number).encode()
        )

    def call_digits(self, number: Id, arguments: Json, meta: Json) -> None:
        self.put(
            b'{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"n":%s}}}'
            % (json.dumps(number).encode(), b"9" * 1_000_000)
        )

    def call_surrogate(self, number: Id, arguments: Json, meta: Json) -> None:
        self.reply(number, text("\ud800"))

    def call_unparseable(self, number: Id, arguments: Json, meta: Json) -> None:
        self.put(b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{]}}' % json.dumps(number).encode())

    def call_list_of_replies(self, number: Id, arguments: Json, meta: Json) -> None:
        self.put(json.dumps([{"jsonrpc": "2.0", "id": number, "result": text("in a batch")}]).encode())

    def call_neither(self, number: Id, arguments: Json, meta: Json) -> None:
        self.send({"id": number})

    def call_both(self, number: Id, arguments: Json, meta: Json) -> None:
        self.send({"id": number, "result": text("ok"), "error": {"code": -32000, "message": "and not ok"}})

    def call_bad_result(self, number: Id, arguments: Json, meta: Json) -> None:
        self.send({"id": number, "result": "text"})

    def call_bad_content(self, number: Id, arguments: Json, meta: Json) -> None:
        self.reply(number, {"content": {"type": "text"}})

    def call_bad_error(self, number: Id, arguments: Json, meta: Json) -> None:
        self.send({"id": number, "error": "broken"})

    def call_wrong_id(self, number: Id, arguments: Json, meta: Json) -> None:
        for other in (999_999, "7", None, 1.5, True, [number]):
            self.send({"id": other, "result": text("for somebody else")})
        self.reply(number, text("for you"))

    def call_duplicate(self, number: Id, arguments: Json, meta: Json) -> None:
        self.reply(number, text("first"))
        self.reply(number, text("second"))

    def call_progress(self, number: Id, arguments: Json, meta: Json) -> None:
        self.report(meta, 3)
        self.reply(number, text("done"))

    def call_progress_flood(self, number: Id, arguments: Json, meta: Json) -> None:
        self.report(meta, 2_000)
        self.reply(number, text("done"))

    def call_odd_progress(self, number: Id, arguments: Json, meta: Json) -> None:
        token = meta.get("progressToken")
        for odd in ({"progress": "half"}, {"progress": None}, {}, {"progress": 1, "total": "x", "message": 5}):
            self.notify("notifications/progress", progressToken=token, **odd)
        self.notify("notifications/progress", progressToken="nobody's", progress=1)
        self.reply(number, text("done"))

    def report(self, meta: Json, count: int) -> None:
        for step in range(count if "progressToken" in meta else 0):
            params = {"progressToken": meta["progressToken"], "progress": step + 1, "total": count}
            self.notify("notifications/progress", **params, message=f"step {step + 1}")

    def call_list_changed_flood(self, number: Id, arguments: Json, meta: Json) -> None:
        for _ in range(int(arguments.get("text", "500"))):
            self.announce()
        self.reply(number, text("announced"))

    def call_stderr_flood(self, number: Id, arguments: Json, meta: Json) -> None:
        size, _, width = arguments.get("text", "").partition("/")
        left, line = int(size or 80 * 65_536), b"e" * int(width or 65_536)
        while left > 0:
            left -= os.write(2, line + b"\n" * bool(width))
        os.write(2, b"\xff\xfe not UTF-8\n")
        self.reply(number, text("said it all"))

    def call_ask(self, number: Id, arguments: Json, meta: Json) -> None:
        """Asks the client for something; tells what it answered."""
        self.asked[f"ask-{number}"] = number
        self.send({"id": f"ask-{number}", "method": arguments.get("text", "roots/list"), "params": {}})

    def call_grandchild(self, number: Id, arguments: Json, meta: Json) -> None:
        grandchild(self)
        self.reply(number, text("spawned"))

    def call_runaway(self, number: Id, arguments: Json, meta: Json) -> None:
        grandchild(self, runs_away=True)
        self.reply(number, text("spawned"))


def grandchild(upstream: Upstream, *, runs_away: bool = False) -> None:
    """A process that inherits our pipes and outlives us unless someone ends the whole group, which it may leave."""
    code = f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep({FOREVER})"
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], start_new_session=runs_away)
    upstream.note("pid", child.pid)


def begin(upstream: Upstream) -> None:
    """What goes wrong before the first message is read."""
    mode, put = upstream.mode, upstream.put
    if mode == "crash_start":
        sys.exit("fake: no configuration found")
    elif mode == "deaf":
        time.sleep(FOREVER)
    elif mode == "flood_start":
        while True:
            put(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}')
    elif mode == "endless_start":
        while True:
            os.write(1, b"x" * 65_536)
    elif mode == "giant_start":
        put(b"x" * int(upstream.option))
    elif mode == "bad_utf8_start":
        put(b"\xff\xfe\xfa")
    elif mode == "noise_start":
        put(b"Starting the server ...")
    elif mode == "json_noise_start":
        put(b'{"not": json')
        put(b'{"level": "info", "msg": "a log line"}')
    elif mode == "stderr_start":
        os.write(2, b"e" * 4_000_000)
    elif mode == "grandchild":
        grandchild(upstream)
    elif mode == "crash_once":
        with open(upstream.option, "a+") as file:
            file.seek(0)
            if not file.read():
                file.write("crashed")
                sys.exit("fake: crashed once")
    elif mode == "late_start":
        while not os.path.exists(upstream.option):
            time.sleep(0.01)
    elif mode == "ignore_eof":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def main(mode: str, journal: str = "-", option: str = "") -> None:
    def put(message: bytes) -> None:
        sys.stdout.buffer.write(message + b"\n")
        sys.stdout.buffer.flush()

    upstream = Upstream(mode, journal, option, put)
    upstream.note("pid", os.getpid())
    begin(upstream)
    for line in sys.stdin.buffer:
        if line.strip():
            upstream.handle(json.loads(line))
    if mode == "ignore_eof":
        time.sleep(FOREVER)


if __name__ == "__main__":
    main(*sys.argv[1:])

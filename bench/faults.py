"""How soon a gateway tells of a fault, and how soon it ends: `python -m bench.faults`.

The tests say that it does; these are the seconds in which.
"""

from __future__ import annotations

import argparse
import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.gateway import scratch
from bench.pool import LOGS
from bench.report import Report, Table, circumstances

MODERN = "2026-07-28"
STUBBORN = """
import json, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    asked = json.loads(line)
    method, result = asked.get("method"), None
    if method == "initialize":
        about = {"name": "stubborn", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    elif method == "tools/list":
        result = {"tools": [{"name": "hang", "inputSchema": {"type": "object"}}]}
    if result is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
time.sleep(10**6)
"""
MODULE = """
import time
from pydantic import BaseModel
class Nothing(BaseModel):
    pass
class Endless:
    description = "Never returns."
    input_schema = Nothing
    output_schema = Nothing
    def execute(self, inputs, context):
        time.sleep(10**6)
"""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A gateway in a process of its own."""

    process: subprocess.Popen[bytes]
    base: str
    token: str
    store: Path

    def status(self, path: str) -> int:
        try:
            with urllib.request.urlopen(f"{self.base}{path}", timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refused:
            return refused.code

    def call(self, tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": tool, "arguments": arguments or {}, "_meta": meta}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        asked = urllib.request.Request(f"{self.base}/agents/a/mcp", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            told: dict[str, Any] = json.load(answer)["result"]
        return told

    def unready_after(self) -> float:
        """Seconds until `/ready` says no."""
        return seconds(lambda: self.status("/ready") == 503)


@contextmanager
def served(folder: Path, **more: Any) -> Iterator[Served]:
    folder.mkdir(parents=True)
    store = folder / "grove.db"
    workspace = {"store": f"sqlite:{store}", "payloadTypes": {"T": {}}}
    config = {"workspace": workspace, "agents": {"a": {"role": "editor", "tools": ["*"]}}, "startupBudget": 20, **more}
    (folder / "toolgrove.yaml").write_text(json.dumps(config))
    command = [sys.executable, "-m", "toolgrove", "serve", str(folder / "toolgrove.yaml"), "--port", "0", "--json"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
    text = b""
    assert process.stdout is not None
    for line in process.stdout:
        text += line
        if line.rstrip() == b"}":
            break
    told = json.loads(text)
    base = str(told["console"]).partition("/console")[0]
    try:
        yield Served(process=process, base=base, token=told["tokens"]["a"], store=store)
    finally:
        process.kill()
        process.wait()


def seconds(condition: Callable[[], bool]) -> float:
    begun = time.monotonic()
    while not condition():
        time.sleep(0.005)
    return time.monotonic() - begun


def stopping(table: Table, folder: Path) -> None:
    modules = folder / "modules" / "say"
    modules.mkdir(parents=True)
    (modules / "endless.py").write_text(MODULE)
    server = {"command": sys.executable, "args": ["-I", "-S", "-c", STUBBORN], "protocol": "legacy", "timeout": 600}
    with served(folder / "stop", mcpServers={"up": server}, extensions=str(folder / "modules")) as gateway:
        for tool in (*["up_hang"] * 5, "say-endless"):
            threading.Thread(target=gateway.call, args=(tool,), daemon=True).start()
        time.sleep(1.0)
        gateway.process.send_signal(signal.SIGTERM)
        took = seconds(lambda: gateway.process.poll() is not None)
    what = "SIGTERM to exit: 5 calls, a module and a server that do not end, s"
    table.add(what, {"ours": took}, target="≤ 5", met=took <= 5)


def locked(table: Table, folder: Path) -> None:
    with served(folder / "lock") as gateway:
        version = gateway.call("get_node", {"nodeId": "root"})["structuredContent"]["version"]
        added = {"parentNodeId": "root", "payloadType": "T", "versionToken": version}
        waits: list[float] = []

        def write() -> None:
            begun = time.monotonic()
            gateway.call("add_child", added)
            waits.append(time.monotonic() - begun)

        with closing(sqlite3.connect(gateway.store, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            writers = [threading.Thread(target=write) for _ in range(3)]
            for writer in writers:
                writer.start()
            noticed = gateway.unready_after()
            reads = []
            while not waits:
                begun = time.monotonic()
                gateway.call("get_node", {"nodeId": "root"})
                reads.append(time.monotonic() - begun)
            for writer in writers:
                writer.join()
            other.execute("ROLLBACK")
        free = seconds(lambda: gateway.status("/ready") == 200)
    table.add("a locked store: /ready says no after, s", {"ours": noticed}, target="≤ 1", met=noticed <= 1)
    table.add("… the longest of three writes, s", {"ours": max(waits)}, target="≤ 5.5", met=max(waits) <= 5.5)
    table.add("… the longest read meanwhile, ms", {"ours": max(reads) * 1000})
    table.add("… /ready says yes again after, s", {"ours": free})


def deleted(table: Table, folder: Path) -> None:
    with served(folder / "gone") as gateway:
        gateway.store.unlink()
        noticed = gateway.unready_after()
    table.add("a deleted store: /ready says no after, s", {"ours": noticed}, target="≤ 1", met=noticed <= 1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    chosen = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    report = Report(circumstances(False, ("mcp", "uvicorn"), "nothing beside"))
    table = report.table("Faults")
    with scratch() as folder:
        for part in (stopping, locked, deleted):
            part(table, folder)
    report.finish(chosen.json)


if __name__ == "__main__":
    main()

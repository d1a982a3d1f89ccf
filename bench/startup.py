"""`python -m bench.startup [--json FILE]`: how much CPU a command takes until it answers, with bytecode present."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from bench.measure import cpu_seconds, percentile
from bench.report import Report, circumstances

ROUNDS = 8
HELP, SERVE = 0.3, 0.8
BIN = Path(sys.executable).parent
WRITING = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
PROJECT = "project: mine\nagents:\n  editor: {tools: ['*']}\n"


def helped(program: str) -> float:
    """CPU seconds of `PROGRAM --help`."""
    child = subprocess.Popen([BIN / program, "--help"], stdout=subprocess.DEVNULL, env=WRITING)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{program} --help ended with {child.returncode}")
    return used.ru_utime + used.ru_stime


def served(folder: Path) -> float:
    """CPU seconds of `toolgrove serve` until an agent's list of tools was answered."""
    (folder / "toolgrove.yaml").write_text(PROJECT)
    command = [str(BIN / "toolgrove"), "serve", "--port", "0", "--no-tokens-on-loopback", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=WRITING) as child:
        try:
            assert child.stdout is not None
            greeting = b""
            while not greeting.rstrip().endswith(b"}\n}"):  # it is indented, and its last line closes it
                line = child.stdout.readline()
                if not line:
                    raise RuntimeError("toolgrove serve ended before it greeted")
                greeting += line
            listed(json.loads(greeting)["agents"]["editor"])
            return cpu_seconds(child.pid)
        finally:
            child.terminate()


def listed(address: str) -> None:
    """Ask what the server is and for its tools, as clients begin, and see that there are some."""
    asked(address, "server/discover")
    if not asked(address, "tools/list")["tools"]:
        raise RuntimeError("no tools are listed")


def asked(address: str, method: str) -> Any:
    """The result of a request."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
    }
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["result"]


def measured(report: Report, rounds: int = ROUNDS) -> None:
    spent: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for program in ("toolgrove", "apcore-mcp"):
            helped(program)
        served(Path(folder))  # the first of each writes the bytecode
        for _ in range(rounds):
            for program in ("toolgrove", "apcore-mcp"):
                spent.setdefault(f"`{program} --help`", []).append(helped(program))
            spent.setdefault("`toolgrove serve`, until a list of tools is answered", []).append(served(Path(folder)))
    table = report.table("Start-up, seconds of CPU with bytecode present")
    for what, seconds in spent.items():
        best, limit = percentile(seconds, 25), HELP if "--help" in what else SERVE
        table.add(what, {"ours": best}, target=f"≤ {limit} s", met=best <= limit)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args()
    report = Report(circumstances(quick=False, packages=("apcore", "mcp", "pydantic"), beside="one process at a time"))
    measured(report)
    report.finish(chosen.json)


if __name__ == "__main__":
    main()

"""`python -m bench.stop [--json FILE]`: seconds until `apcore-mcp` has ended, with a call that never does."""

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.peers import free_port
from bench.report import Report, circumstances, say
from bench.wire import MODERN, Connection, request

BUDGET = 5.0
ROUNDS = 3
MODULE = """
import asyncio, pathlib, threading
from pydantic import BaseModel


class Nothing(BaseModel):
    pass


class Never:
    description = "Never ends"
    input_schema = Nothing
    output_schema = Nothing

    {execute}(self, inputs, context):
        pathlib.Path(__file__).with_suffix(".begun").touch()
        {wait}
"""
KINDS = {
    "async": ("async def execute", "await asyncio.Event().wait()"),
    "sync": ("def execute", "threading.Event().wait()"),
}


def seconds_to_end(transport: str, kind: str) -> float:
    """From the signal to the end of the process."""
    execute, wait = KINDS[kind]
    with tempfile.TemporaryDirectory() as folder:
        module, port = Path(folder, "never.py"), free_port()
        module.write_text(MODULE.format(execute=execute, wait=wait))
        command = [sys.executable, "-m", "apcore_mcp", "--extensions-dir", folder, "--port", str(port)]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [*command, "--transport", transport], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
        ) as process:
            asked = request(MODERN, "tools/call", {"name": "never", "arguments": {}})
            if transport == "stdio" and process.stdin is not None:
                process.stdin.write(json.dumps(asked).encode() + b"\n")
                process.stdin.flush()
            else:
                connection = _connected(port)
                connection.socket.sendall(connection.encode(asked))
            while not module.with_suffix(".begun").exists():
                time.sleep(0.01)
            started = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.wait()
            return time.monotonic() - started


def _connected(port: int) -> Connection:
    while True:
        try:
            return Connection(port, "/mcp", MODERN)
        except ConnectionRefusedError:
            time.sleep(0.02)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.stop", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    arguments = parser.parse_args()
    report = Report(circumstances(False, ("apcore", "mcp", "uvicorn"), "nothing beside it"))
    table = report.table("NFR-REL-001: seconds from SIGTERM to the end of the process, with a call that never ends")
    for transport in ("streamable-http", "stdio"):
        for kind in KINDS:
            say(f"{transport}, {kind}")
            took = statistics.median(seconds_to_end(transport, kind) for _ in range(ROUNDS))
            table.add(f"{transport}, {kind} module", {"ours": took}, target="≤ 5 s", met=took <= BUDGET)
    report.finish(arguments.json)


if __name__ == "__main__":
    main()

"""A server spoken to without us: JSON-RPC lines over its pipes, nothing read into what it says."""

import contextlib
import itertools
import json
import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from waiting import DEADLINE

PROTOCOL = "2025-11-25"


class Direct:
    """One session with a server."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._numbers = itertools.count(1)

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """What it answers; what it says in between is passed over, and its questions are refused."""
        number = next(self._numbers)
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.startswith("{"):
                continue
            message = json.loads(line)
            if "method" in message and "id" in message:
                refusal = {"code": -32601, "message": "Method not found"}
                self._send({"jsonrpc": "2.0", "id": message["id"], "error": refusal})
            elif message.get("id") == number:
                answer: dict[str, Any] = message
                return answer
        raise AssertionError("the server closed its output")

    def tell(self, method: str) -> None:
        self._send({"jsonrpc": "2.0", "method": method})

    def tools(self) -> dict[str, dict[str, Any]]:
        """Every definition by its name."""
        found: dict[str, dict[str, Any]] = {}
        params: dict[str, Any] = {}
        while True:
            result = self.request("tools/list", params)["result"]
            found |= {tool["name"]: tool for tool in result["tools"]}
            if "nextCursor" not in result:
                return found
            params = {"cursor": result["nextCursor"]}

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


@contextlib.contextmanager
def direct(command: Sequence[str], env: dict[str, str], cwd: Path) -> Iterator[Direct]:
    """A server that has been greeted; whatever it does, it is ended."""
    with subprocess.Popen(
        command,
        env=os.environ | env,
        cwd=cwd,
        encoding="utf-8",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        watch = threading.Timer(5 * DEADLINE, process.kill)
        watch.start()
        try:
            session = Direct(process)
            client = {"name": "direct", "version": "1"}
            greeting = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
            session.request("initialize", greeting)
            session.tell("notifications/initialized")
            yield session
        finally:
            watch.cancel()
            process.kill()

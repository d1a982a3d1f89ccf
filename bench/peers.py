"""The subjects' environments and processes."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from bench.measure import Round, cpu_seconds, resident_mb
from bench.wire import ERAS, INITIALIZED, LEGACY, MODERN, Connection, Pipe, check, initialize

ROOT = Path(__file__).resolve().parent.parent
PEER = "apcore-mcp==0.23.3"
PEER_HOME = ROOT / ".cache" / "bench" / "peer"
WAIT = 180.0


def peer_python() -> str:
    """The interpreter of the peer's own environment, made when it is first needed."""
    python, ready = PEER_HOME / "bin" / "python", PEER_HOME / ".ready"
    if not ready.exists():
        uv = str(Path(sys.executable).parent / "uv")
        subprocess.run([uv, "venv", "-q", "--clear", "--python", sys.executable, str(PEER_HOME)], check=True)
        subprocess.run([uv, "pip", "install", "-q", "--python", str(python), PEER], check=True)
        ready.touch()
    return str(python)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


class Process:
    """A subject in a process of its own, in its own environment."""

    def __init__(self, name: str, *arguments: object) -> None:
        python = peer_python() if name == "peer" else sys.executable
        command = [python, "-m", "bench.subject", name, *map(str, arguments)]
        environment = {key: value for key, value in os.environ.items() if name != "peer" or key != "PYTHONPATH"}
        pipe, self.name, self.started = subprocess.PIPE, name, time.monotonic()
        with open(PEER_HOME.parent / f"{name}.log", "wb") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, stderr=log)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def streams(self) -> Any:
        return self._process.stdin, self._process.stdout

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in self.streams:
            with contextlib.suppress(OSError):
                stream.close()

    def cpu_of(self, drive: Callable[[], Round]) -> Round:
        before = cpu_seconds(self.pid)
        done = drive()
        return Round(latencies=done.latencies, seconds=done.seconds, cpu=cpu_seconds(self.pid) - before)


class HttpServer(Process):
    def __init__(self, name: str, tools: int) -> None:
        self.port, self.tools = free_port(), tools
        super().__init__(name, "http", self.port, tools)

    def wait(self) -> None:
        """Until it answers; then `stages` tells when it was imported, filled and ready, in seconds."""
        said = json.loads(self.streams[1].readline())
        while not self._answers():
            time.sleep(0.002)
            if time.monotonic() - self.started > WAIT:
                raise TimeoutError(f"{self.name} is not ready after {WAIT} s")
        ready = time.monotonic()
        self.stages = {"process": ready - self.started, "serve": ready - said["registered"]}
        self.stages["cpu"] = cpu_seconds(self.pid) - said["cpu"]
        self.rss_before, self.rss_ready = said["rss"], resident_mb(self.pid)

    def _answers(self) -> bool:
        try:
            one = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)
        except ConnectionRefusedError:
            return False
        with one:
            one.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n\r\n" % self.port)
            return bool(one.recv(100))

    def connect(self, era: str) -> Connection:
        path = {("peer", LEGACY): "/mcp/", ("lean", MODERN): "/json"}.get((self.name, era), "/mcp")
        return Connection(self.port, path, MODERN if self.name == "limit" else era)


class StdioServer(Process):
    def __init__(self, name: str, tools: int, era: str) -> None:
        super().__init__(name, "stdio", tools)
        self._era = MODERN if name == "limit" else era

    def wait(self) -> None:
        into, out = self.streams
        self.pipe = Pipe(into, out, self._era)


class Worker(Process):
    """Measures inside the subject's process."""

    def __init__(self, name: str, tools: int) -> None:
        super().__init__(name, "work", tools)

    def wait(self) -> None:
        if self.name != "limit":
            self.do("greet", connection=ERAS.index(LEGACY), messages=[initialize(), INITIALIZED])

    def do(self, what: str, **order: Any) -> dict[str, Any]:
        into, out = self.streams
        into.write(json.dumps({"do": what, **order}).encode() + b"\n")
        into.flush()
        line = out.readline()
        if not line:
            raise RuntimeError(f"The worker of {self.name} ended")
        return cast("dict[str, Any]", json.loads(line))

    def ask(self, era: str, messages: list[dict[str, Any]], in_flight: int) -> Round:
        done = self.do("ask", connection=ERAS.index(era), messages=messages, in_flight=in_flight)
        asked = {message["id"]: message for message in messages}
        for answer in done.pop("answers"):
            check(asked[answer["id"]], answer)
        return Round(**done)

    def time(self, what: str, **order: Any) -> Round:
        return Round(**self.do(what, **order))

"""What is measured in bench.gateway: each in a process, and each peer in an environment, of its own."""

import json
import os
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from bench.hop import ROOT
from bench.measure import resident_mb
from bench.peers import free_port
from bench.pool import Hop
from bench.wire import MODERN, Connection

FASTMCP = "fastmcp==4.1.2"
FORGE = "mcp-contextforge-gateway==1.0.7.post20260921"
HOMES = ROOT / ".cache" / "bench"
START_WITHIN = 240.0


def environment(name: str, package: str) -> Path | None:
    """The programs of a peer's own environment, made when it is first needed; None where it cannot be had."""
    home = HOMES / name
    ready = home / ".ready"
    if not ready.exists() or ready.read_text() != package:
        uv = str(Path(sys.executable).parent / "uv")
        try:
            subprocess.run([uv, "venv", "-q", "--clear", "--python", sys.executable, str(home)], check=True)
            subprocess.run([uv, "pip", "install", "-q", "--python", str(home / "bin" / "python"), package], check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        ready.write_text(package)
    return home / "bin"


class Ours(Hop):
    """`toolgrove serve` of a project, as its users have it; `started` is how long it took to greet."""

    command: tuple[str, ...] = (sys.executable, "-m", "toolgrove")

    def __init__(self, name: str, folder: Path, config: dict[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "toolgrove.yaml"
        self.file.write_text(json.dumps(config), "utf-8")
        begun = time.monotonic()
        super().__init__(name, [*self.command, "serve", str(self.file), "--port", "0", "--json"])
        try:
            greeting = self._greeting()
        except RuntimeError:
            self.close()
            raise
        self.started = time.monotonic() - begun
        self.console, self.tokens = greeting["console"], greeting["tokens"]
        self.port = int(self.console.partition("/console")[0].rpartition(":")[2])

    def _greeting(self) -> dict[str, Any]:
        said = b""
        for line in self._process.stdout or ():
            said += line
            if line.rstrip() == b"}":
                greeting: dict[str, Any] = json.loads(said)
                if "console" not in greeting:
                    raise RuntimeError(f"{self.name} did not start: {greeting}")
                return greeting
        raise RuntimeError(f"{self.name} did not start; see its log")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def megabytes(self) -> float:
        return resident_mb(self.pid)

    def connect(self, era: str, agent: str = "a0") -> Connection:
        return Connection(self.port or 0, f"/agents/{agent}/mcp", era, self.tokens[agent])


class Profiled(Hop):
    """The same project with a profiler in its process."""

    def __init__(self, ours: Ours) -> None:
        self._token = ours.tokens["a0"]
        port = free_port()
        command = [sys.executable, "-m", "bench.hop", "profiled", "http", str(port), MODERN, str(ours.file)]
        super().__init__("profiled", command, port=port)

    def get(self, path: str) -> Any:
        return _asked(f"http://127.0.0.1:{self.port}/{path}", self._token)

    def connect(self, era: str) -> Connection:
        return Connection(self.port or 0, "/agents/a0/mcp", era, self._token)


class Forge(Hop):
    """ContextForge on SQLite with one upstream server; it speaks the handshake era only."""

    def __init__(self, programs: Path, folder: Path, upstream: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        port, key = free_port(), secrets.token_urlsafe(32)
        settings = {
            "DATABASE_URL": f"sqlite:///{folder}/mcp.db",
            "JWT_SECRET_KEY": key,
            "AUTH_ENCRYPTION_SECRET": secrets.token_urlsafe(32),
            "BASIC_AUTH_PASSWORD": secrets.token_urlsafe(16),
            "PLATFORM_ADMIN_EMAIL": "admin@example.com",
            "PLATFORM_ADMIN_PASSWORD": f"Aa1!{secrets.token_urlsafe(16)}",
            "CACHE_TYPE": "memory",
            "LOG_LEVEL": "ERROR",
            "MCPGATEWAY_UI_ENABLED": "false",
            "MCPGATEWAY_ADMIN_API_ENABLED": "false",
            "PLUGINS_ENABLED": "false",
            "RATE_LIMITING_ENABLED": "false",
            "TOOL_RATE_LIMIT": "100000000",
            "TOOL_CONCURRENT_LIMIT": "1000",
            "SSRF_ALLOW_LOCALHOST": "true",
            "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
        }
        self._settings = os.environ | settings
        self._programs, self._upstream, self._key = programs, upstream, key
        command = [str(programs / "mcpgateway"), "--host", "127.0.0.1", "--port", str(port), "--no-access-log"]
        # Through `env`, since a hop has the surroundings of this process.
        super().__init__("forge", ["env", *(f"{key}={value}" for key, value in settings.items()), *command], port=port)

    def wait(self) -> None:
        """Until it answers, which takes long: it makes its tables first; then the upstream is made known to it."""
        end = time.monotonic() + START_WITHIN
        while not self._is_healthy():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("ContextForge did not start; see its log")
            time.sleep(0.2)
        making = ["-m", "mcpgateway.utils.create_jwt_token", "-u", "admin@example.com", "--exp", "600", "--admin"]
        made = subprocess.run(
            [str(self._programs / "python"), *making, "--secret", self._key, "--algo", "HS256"],
            env=self._settings,
            check=True,
            capture_output=True,
            text=True,
        )
        self._token = made.stdout.split()[-1]
        form = {"name": "up", "url": self._upstream, "transport": "STREAMABLEHTTP", "visibility": "public"}
        _asked(f"http://127.0.0.1:{self.port}/gateways", self._token, form)

    def _is_healthy(self) -> bool:
        try:
            return bool(_asked(f"http://127.0.0.1:{self.port}/health", ""))
        except (OSError, urllib.error.URLError):
            return False

    def connect(self, era: str) -> Connection:
        return Connection(self.port or 0, "/mcp", era, self._token)


def _asked(url: str, token: str, form: Any = None) -> Any:
    body = None if form is None else json.dumps(form).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as answer:
        return json.load(answer)

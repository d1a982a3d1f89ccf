"""Servers that people use: they are started, listed and called as they come."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pool.mcp.mcp_kit import ready

pytestmark = pytest.mark.anyio


def needs(module: str) -> None:
    """Skip without the server on a developer's machine; fail in CI, where it must be there."""
    if importlib.util.find_spec(module) is None:
        assert not os.environ.get("CI"), f"{module} is missing"
        pytest.skip(f"{module} is not installed")


async def test_the_time_server_converts_a_time() -> None:
    needs("mcp_server_time")
    async with ready({"command": sys.executable, "args": ["-m", "mcp_server_time"]}, name="time") as hand:
        assert {offer.name for offer in hand.offers.values()} == {"time_get_current_time", "time_convert_time"}
        times: dict[str, Any] = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        assert "21:00" in str(await hand.ok("convert_time", **times))
        error = await hand.refused("convert_time", **{**times, "target_timezone": "Nowhere"})
        assert (error["reason"], "Nowhere" in error["message"]) == ("tool_error", True)


async def test_the_git_server_reads_a_repository(tmp_path: Path) -> None:
    needs("mcp_server_git")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "a.txt").write_text("one\n")
    subprocess.run([*git, "-C", str(tmp_path), "add", "."], check=True)
    subprocess.run([*git, "-C", str(tmp_path), "commit", "-q", "-m", "The first"], check=True)
    config = {"command": sys.executable, "args": ["-m", "mcp_server_git", "--repository", str(tmp_path)]}
    async with ready(config, name="git") as hand:
        assert "The first" in await hand.text("git_log", repo_path=str(tmp_path))
        assert "nothing to commit" in await hand.text("git_status", repo_path=str(tmp_path))

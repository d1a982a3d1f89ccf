"""What is published: built and listed by the script of a release, installed by the one of the container."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path
from urllib.error import URLError

import pytest

from ports import free_port
from waiting import wait_until

ROOT = Path(__file__).parent.parent.parent
PIN = re.compile(r"^([a-z0-9-]+)==", re.MULTILINE)


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=170
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a release."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    said = run("tools/release.sh", str(folder), BIN=str(Path(sys.executable).parent))
    assert said.count("PASSED") == 2
    return folder


@pytest.mark.long
def test_the_wheel_carries_the_pages_and_all_that_is_not_python(released: Path) -> None:
    [wheel] = released.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    tracked = run("git", "ls-files", "src").splitlines() if (ROOT / ".git").exists() else []
    wanted = {path.removeprefix("src/") for path in tracked}
    assert {"toolgrove/web/console.html", "apcore_mcp/explorer/explorer.html", "toolgrove/sample/shop.json"} <= inside
    assert wanted - inside == set()


@pytest.mark.long
def test_the_bill_of_materials_lists_every_package_that_runs(released: Path) -> None:
    bill = json.loads((released / "toolgrove.cdx.json").read_text())
    pinned = set(PIN.findall((ROOT / "requirements" / "run.txt").read_text()))
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "toolgrove"
    assert {one["name"].lower() for one in bill["components"]} == pinned
    listed = (released / "SHA256SUMS").read_text().split()[1::2]
    assert set(listed) == {path.name for path in released.iterdir()} - {"SHA256SUMS"}


def answer(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return str(response.read().decode())
    except (URLError, OSError):
        return ""


@pytest.mark.long
def test_an_installed_toolgrove_runs_the_demo_with_its_console(tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    assert "toolgrove 0." in run("tools/install.sh", str(prefix), PYTHON=sys.executable)
    port = free_port()
    command = [str(prefix / "bin" / "toolgrove"), "demo", "--no-browser", "--port", str(port)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV"))}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as demo:
        try:
            wait_until(lambda: demo.poll() is not None or "ok" in answer(f"http://127.0.0.1:{port}/health"))
            assert "<title>" in answer(f"http://127.0.0.1:{port}/console")
        finally:
            demo.send_signal(signal.SIGTERM)
            demo.communicate(timeout=60)
    shutil.rmtree(prefix)


def test_the_container_runs_no_step_that_is_not_tested() -> None:
    text = (ROOT / "Containerfile").read_text()
    steps = re.findall(r"^RUN (.*)$", text, re.MULTILINE)
    assert steps == ["tools/install.sh /opt/toolgrove"]
    assert "COPY --from=build /opt/toolgrove /opt/toolgrove" in text
    assert os.access(ROOT / "tools" / "install.sh", os.X_OK)


def test_the_container_serves_what_the_command_line_takes() -> None:
    [arguments] = re.findall(r"^CMD (.*)$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    taken = run(sys.executable, "-m", "toolgrove", "serve", "--help")
    flags = [one for one in json.loads(arguments) if one.startswith("--")]
    assert flags == ["--host"]
    assert all(flag in taken for flag in flags)

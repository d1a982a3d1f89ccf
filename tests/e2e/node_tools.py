"""Where `.ci/node-tools.sh` puts the Node programs that some tests run."""

import os
import subprocess
from pathlib import Path

import pytest

from waiting import DEADLINE

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = ROOT / ".cache" / "node"
NODE = TOOLS / "bin" / "node"
PACKAGES = TOOLS / "node_modules" / "@modelcontextprotocol"
CONFORMANCE = PACKAGES / "conformance" / "dist" / "index.js"
INSPECTOR = PACKAGES / "inspector" / "clients" / "launcher" / "build" / "index.js"


def require(*programs: Path) -> None:
    """Skip, loudly, where Node tools are not installed; in CI they must be."""
    missing = [str(program) for program in (NODE, *programs) if not program.exists()]
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"missing in CI: {', '.join(missing)}")
    if missing:
        pytest.skip("needs Node tools; install them with: bash .ci/node-tools.sh")


def node(*arguments: str | Path, within: float = 3 * DEADLINE) -> subprocess.CompletedProcess[str]:
    """Run a Node program to its end."""
    return subprocess.run(
        [str(NODE), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=within,
        stdin=subprocess.DEVNULL,
        cwd=TOOLS,
        env=os.environ | {"NO_COLOR": "1"},
    )

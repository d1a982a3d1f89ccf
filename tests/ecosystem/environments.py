"""Where `tools/ecosystem.sh` puts the environments."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
ENVIRONMENTS = ROOT / ".cache" / "ecosystem"
NODE_MODULES = ENVIRONMENTS / "node" / "node_modules"


def python_of(name: str) -> Path:
    """The Python of an environment."""
    return ENVIRONMENTS / name / "bin" / "python"


def require(*paths: Path) -> None:
    """Skip, loudly, where the environments are not there; in CI they must be."""
    missing = [str(path) for path in paths if not path.exists()]
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"missing in CI: {', '.join(missing)}")
    if missing:
        pytest.skip("needs the environments of other people's programs: make ecosystem")

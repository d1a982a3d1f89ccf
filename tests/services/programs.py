"""Where the programs of a service are."""

import os
import shutil
from pathlib import Path

import pytest

PACKAGES = {"initdb": "postgresql", "redis-server": "redis-server", "haproxy": "haproxy", "cc": "gcc libc6-dev"}
PLACES = (*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), Path("/usr/sbin"))


def found(name: str) -> Path | None:
    on_path = shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, PLACES)))
    return None if on_path is None else Path(on_path)


def program(name: str) -> Path:
    """The program, or a skipped test; CI must have it."""
    path = found(name)
    if path is not None:
        return path
    missing = f"{name} is missing, so this test cannot run (apt install {PACKAGES[name]})"
    if os.environ.get("CI") == "true":
        pytest.fail(missing)
    pytest.skip(missing)


def missing() -> list[str]:
    """The packages that tests marked `services` need and this machine lacks."""
    return [package for name, package in PACKAGES.items() if found(name) is None]

"""Every call that writes fails once, is short, or is the last: what was acknowledged is there, and nothing by halves.

CI tries a part of all calls, drawn by a seed. To draw others, or to try each of them, which takes about an hour (of the
one part of the day that has more than ten thousand it is two thousand):

    SWEEP_SEED=7 .venv/bin/python -m pytest tests/sweep
    SWEEP=all .venv/bin/python -m pytest tests/sweep
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sweep.disk import FAULTS, compiled, environment

SEED = int(os.environ.get("SWEEP_SEED", "24"))
EACH = os.environ.get("SWEEP") == "all"
TESTS = Path(__file__).parents[1]
pytestmark = [pytest.mark.long, pytest.mark.timeout(0 if EACH else 600)]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("disk"))


def swept(how: str, most: int, folder: Path, library: Path, *, at_least: int | None = None) -> None:
    """Sweep so many calls of each part of the day."""
    words = ["-m", "sweep.program", how, str(folder), str(0 if EACH else most), str(SEED)]
    done = subprocess.run(
        [sys.executable, *words], env=environment(library), cwd=TESTS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert found["wrong"] == [], f"of {found['tried']} of {found['all']} calls, drawn with SWEEP_SEED={SEED}"
    assert found["tried"] >= (4 * most if at_least is None else at_least)


def test_a_crash_between_any_two_calls_leaves_what_was_acknowledged(tmp_path: Path, library: Path) -> None:
    swept("crashes", 15, tmp_path, library)


def test_a_backup_that_was_cut_off_is_swept_by_the_next_and_never_half_there(tmp_path: Path, library: Path) -> None:
    swept("backups", 15, tmp_path, library, at_least=10)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_call_that_fails_once_leaves_what_was_acknowledged(fault: str, tmp_path: Path, library: Path) -> None:
    swept(fault, 6, tmp_path, library)

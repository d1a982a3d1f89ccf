"""The page about security: each promise names a file that keeps it and a test that proves it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
ROWS = [row.split(" | ") for row in PAGE.splitlines() if re.match(r"\| .*`(?:tests/|test_)", row)]
TESTS = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("row", ROWS, ids=[row[0][2:40] for row in ROWS])
def test_a_promise_is_kept_in_a_file_and_proved_by_a_test(row: list[str]) -> None:
    _, kept, proved = row
    places = re.findall(r"`([a-z_/]+\.py)`", kept)
    proofs = re.findall(r"`([a-z_/]+\.py|test_[a-z0-9_]+)`", proved)
    assert places
    assert proofs
    for place in places:
        assert (ROOT / "src" / place).is_file(), place
    for proof in proofs:
        known = (ROOT / proof).is_file() if "/" in proof else f"def {proof}(" in TESTS
        assert known, proof

"""A journal for the fake servers of each test."""

from pathlib import Path

import pytest

from faults.kit import Journal


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")

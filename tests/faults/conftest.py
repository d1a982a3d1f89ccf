"""A journal for the fake servers of each test, and a watch on our own memory."""

from pathlib import Path

import pytest

from faults.kit import Journal, Peak


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture
def peak() -> Peak:
    return Peak()

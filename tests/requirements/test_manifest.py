"""The specifications and the tests name each other, both ways."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from requirements.manifest import DOCUMENTS, FINISHED, NOT_PROVED_HERE, NOTES, REQUIREMENTS
from requirements.markers import carriers

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("area", sorted(FINISHED))
def test_every_requirement_of_a_finished_area_has_a_test(area: str) -> None:
    carried = carriers()
    missing = [r.id for r in REQUIREMENTS.values() if r.area == area and r.id not in carried]
    assert missing == []


def test_what_is_not_proved_here_is_in_the_manifest_with_one_note() -> None:
    assert NOT_PROVED_HERE.keys() <= REQUIREMENTS.keys()
    assert not NOT_PROVED_HERE.keys() & NOTES.keys()
    page = (ROOT / "docs" / "conformance.md").read_text()
    assert page.count("| **not proved here**") == len(NOT_PROVED_HERE)


def test_every_marker_names_a_requirement_of_the_manifest() -> None:
    unknown = {id: tests for id, tests in carriers().items() if id not in REQUIREMENTS}
    assert unknown == {}


def test_what_pytest_collected_is_what_the_source_says(collected_requirements: dict[str, list[str]]) -> None:
    carried = carriers()
    for id, nodes in collected_requirements.items():
        assert {node.partition("[")[0] for node in nodes} <= set(carried[id])


def test_the_manifest_counts_what_the_documents_count() -> None:
    kinds = Counter(id.rpartition("-")[0].partition("-")[0] for id in REQUIREMENTS)
    assert kinds == {"FR": 88, "NFR": 20, "TREE": 16 + 49, "POOL": 11, "CALL": 7}


def test_ids_are_unique_across_documents() -> None:
    assert sum(len(document.titles) for document in DOCUMENTS) == len(REQUIREMENTS)


def test_the_conformance_table_is_current() -> None:
    check = [sys.executable, str(ROOT / "tools" / "conformance.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

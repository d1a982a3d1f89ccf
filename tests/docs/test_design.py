"""The design page is a map: what it names exists, and no folder is missing."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
NAMES = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))
PACKAGES = sorted(path.name for path in SRC.iterdir() if (path / "__init__.py").exists())
PATHS = [name for name in NAMES if re.fullmatch(rf"(?:{'|'.join(PACKAGES)})/[\w/.]*", name)]


def test_every_path_on_the_page_leads_somewhere() -> None:
    assert len(PATHS) > 50
    assert [path for path in PATHS if not (SRC / path).exists()] == []


def test_a_folder_is_named_with_a_slash_and_a_file_with_its_ending() -> None:
    assert [path for path in PATHS if (SRC / path).is_dir() != path.endswith("/")] == []


def test_every_folder_is_on_the_page() -> None:
    folders = {str(file.parent.relative_to(SRC)) for file in SRC.rglob("__init__.py")}
    named = {path.rstrip("/") for path in PATHS} | {name for name in NAMES if name in PACKAGES}
    assert folders - named == set()


def test_every_class_on_the_page_is_one_of_ours_or_of_apcore() -> None:
    named = {name.split(".")[0] for name in NAMES if re.fullmatch(r"(?:[A-Z][a-z]+){1,4}(?:\.\w+)?", name)}
    source = "\n".join(file.read_text(encoding="utf-8") for file in SRC.rglob("*.py"))
    assert {name for name in named if f"class {name}" not in source} <= {"CancelToken"}


def test_the_layout_in_the_guide_for_contributors_is_the_layout() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?) \|", guide.partition("## Layout")[2].partition("\n## ")[0], re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    tests = {f"tests/{path.parent.name}" for path in ROOT.glob("tests/*/__init__.py")}
    assert {name for name in named if not (ROOT / name).is_dir()} == set()
    assert {*tests, *(f"src/{package}" for package in PACKAGES)} - named == set()

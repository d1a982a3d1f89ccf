"""What the pages say is current, complete and self-contained."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GENERATED = {"conformance.md", "benchmarks.md"}
PAGES = [*sorted(ROOT.glob("*.md")), *(page for page in sorted(DOCS.glob("*.md")) if page.name not in GENERATED)]


def test_the_table_of_options_is_current() -> None:
    check = subprocess.run([sys.executable, str(DOCS / "gen_options.py"), "--check"], check=False)
    assert check.returncode == 0, "run python docs/gen_options.py"


def test_every_dependency_has_a_reason_and_no_other_has() -> None:
    project = PROJECT["project"]
    extras = project["optional-dependencies"].values()
    groups = [project["dependencies"], *extras, *PROJECT["dependency-groups"].values()]
    declared = {Requirement(text).name for group in groups for text in group}
    rows = re.findall(r"^\| (`.+?) \| .{10,} \|$", (DOCS / "dependencies.md").read_text(), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([\w.-]+)`", row)} == declared


def test_the_readme_is_short_and_says_where_to_look() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    for promised in ("make run", "make test", "http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000/explorer/"):
        assert promised in text


def test_the_changelog_is_whole_sentences_in_groups() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    entries = [" ".join(entry.split()) for entry in re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE)]
    assert [entry for entry in entries if not re.match(r"[A-Z`]", entry) or entry[-1] not in ".…"] == []
    assert len(set(entries)) == len(entries)
    assert re.search(r"^- ", text.partition("### Added")[2].partition("\n#### ")[0], re.MULTILINE) is None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_relative_link_leads_to_a_file(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_no_place_on_the_author_s_machine(page: Path) -> None:
    assert not re.search(r"(?<![\w.])/(?:work|home|root|tmp|Users)/", page.read_text())


FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//"""
    r"""|<link\b[^>]*rel=["']?(?:stylesheet|preconnect|icon)[^>]*href=["']?(?:https?:)?//"""
)


def test_the_site_builds_strictly_and_asks_no_other_host_for_anything(tmp_path: Path) -> None:
    # Not with --quiet: warnings that are not shown do not count as failures.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) >= len(list(DOCS.glob("*.md")))
    assert [page.name for page in pages if FETCHED.search(page.read_text())] == []

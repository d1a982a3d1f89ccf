"""Plain English: the phrases that the glossary rules out stand on no page and in no error."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
RULED_OUT = {
    r"\banew\b": "again",
    r"\bhas(?:,)? or has not\b|, or has not\b": "does or doesn't have",
    r"\bmakes? (?:it|them) void\b": "revokes",
    r"\bis to be\b(?! (?:read|hidden|moved))": "say what happens",
    r"\bhenceforth\b|\bthereof\b|\bwhosoever\b": "common words",
    r"a person's yes": "approval",
    r"hears about it": "Toolgrove warns you",
    r"will stand here": "will be saved here",
    r"To repeat the call is safe": "It is safe to repeat the call",
    r"\bvoid\b(?! \*)": "no longer valid",
    r"\bin force\b": "in use",
    r"\bbelongs? into\b": "belongs in",
    r"something else than": "something other than",
    r"\bleave it away\b": "leave it out",
    r"\ba test holds\b|\bthat a test holds\b": "a test checks",
    r"\bby nobody\b": "by no one, or say who",
    r"\bhas not the\b|\bhave not the\b": "does not have the",
}
ELSEWHERE = {"glossary.md", "conformance.md", "benchmarks.md", "mutations.md"}
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in ELSEWHERE)]
ERRORS = sorted((ROOT / "src" / "toolgrove" / "errors").glob("*.py"))


@pytest.mark.parametrize("page", [*PAGES, *ERRORS], ids=lambda page: page.name)
def test_a_page_and_an_error_use_the_words_of_the_glossary(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = [
        f"{match[0]!r}: write {better!r}"
        for pattern, better in RULED_OUT.items()
        for match in re.finditer(pattern, text)
    ]
    assert found == []


def test_the_glossary_is_in_order_and_names_each_word_once() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([^|]+?) \|", text.partition("## How we write")[0], re.MULTILINE)[2:]
    assert len(words) > 20
    assert words == sorted(set(words))

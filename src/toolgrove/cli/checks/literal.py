"""Values that stand in the file though they look like secrets."""

from __future__ import annotations

import re

_VALUE = re.compile(
    r"\b(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|AKIA[A-Z0-9]{16}"
    r"|AIza[\w-]{30,}|ya29\.[\w-]{20,}|npm_\w{20,}|pypi-\w{20,}|hf_\w{20,}|(?<![\w-])eyJ[\w-]{10,}+\.[\w.-]{10,})"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)


def looks_like_a_secret(value: str) -> bool:
    """Whether the value looks like a well-known kind of key."""
    return _VALUE.search(value) is not None


def hidden(text: str) -> str:
    """The text with every such value blotted out."""
    return _VALUE.sub("[secret]", text)

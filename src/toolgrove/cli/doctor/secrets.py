"""Secrets: is each one set, may its user have it, is it really a reference, and is its file private?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolgrove.cli.doctor.finding import Finding, Level
from toolgrove.cli.doctor.modes import open_to_others
from toolgrove.cli.doctor.references import REFERENCE, Place, places
from toolgrove.config import Config
from toolgrove.errors import GroveError
from toolgrove.pool.secrets import Secrets

_NAMED = re.compile(r"authorization|token|secret|password|passwd|credential|api[-_]?key|access[-_]?key|cookie", re.I)
_LOOKS = re.compile(
    r"\b(sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|AKIA[A-Z0-9]{16}"
    r"|AIza[\w-]{30,}|ya29\.[\w-]{20,}|npm_\w{20,}|pypi-\w{20,}|hf_\w{20,}|eyJ[\w-]{10,}\.[\w-]{10,})"
    r"|\w+://[^/\s:@]+:[^/\s@]+@"
)


def check(config: Config) -> Iterator[Finding]:
    """Look at every reference, and at every literal that should be one."""
    found = list(places(config))
    secrets = Secrets(config.secrets, folder=config.folder)
    for place in found:
        if place.references:
            yield from _reference(secrets, place, config)
        elif _is_literal_secret(place):
            yield _finding(
                "warning",
                place.field,
                "a secret seems to stand in the file itself; write ${env:NAME} and set that variable instead",
            )
    used = {name for place in found for _, name in place.references}
    for name in config.secrets:
        if name not in used:
            yield _finding("warning", f"secrets.{name}", "no server or tool refers to it; is the name right?")
        elif not config.secrets[name].tools:
            yield _finding("warning", f"secrets.{name}", "names no tools, so that nobody may use it")


def _reference(secrets: Secrets, place: Place, config: Config) -> Iterator[Finding]:
    try:
        secrets.fill(place.text, field=place.field, user=place.user)
    except GroveError as problem:
        yield _finding("error", place.field, problem.message)
        return
    for kind, name in place.references:
        scope = "scoped" if name in config.secrets else "for any tool: 'secrets' does not name it"
        yield _finding("ok", place.field, f"${{{kind}:{name}}} is set ({scope})")
        if kind == "file" and (who := open_to_others(config.folder / name)):
            yield _finding("warning", place.field, f"the file {name} can be read by {who}; chmod 600 it")


def _is_literal_secret(place: Place) -> bool:
    if REFERENCE.search(place.text) or not place.text.strip():
        return False
    named = _NAMED.search(place.key) is not None and place.field.split(".")[-2:-1] in (["env"], ["headers"])
    return named or place.key == "apiKey" or _LOOKS.search(place.text) is not None


def _finding(level: Level, subject: str, message: str) -> Finding:
    return Finding(area="secrets", level=level, subject=subject, message=message)

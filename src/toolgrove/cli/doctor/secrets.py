"""Secrets: is each one set, may its user have it, is it really a reference, and is its file private?"""

from __future__ import annotations

from collections.abc import Iterator

from toolgrove.cli.doctor.finding import Finding, Level
from toolgrove.cli.doctor.literal import looks_like_a_secret, names_a_secret
from toolgrove.cli.doctor.modes import open_to_others
from toolgrove.cli.doctor.references import REFERENCE, Place, places
from toolgrove.config import Config
from toolgrove.errors import GroveError
from toolgrove.pool.secrets import Secrets


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
    return (place.named and names_a_secret(place.key)) or looks_like_a_secret(place.text)


def _finding(level: Level, subject: str, message: str) -> Finding:
    return Finding(area="secrets", level=level, subject=subject, message=message)

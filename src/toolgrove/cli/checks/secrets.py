"""Secrets: is each one set, may its user have it, is it really a reference, and is its file private?"""

from __future__ import annotations

from collections.abc import Iterator

from toolgrove.cli.checks.finding import Finding, Level
from toolgrove.cli.checks.literal import looks_like_a_secret
from toolgrove.cli.checks.modes import open_to_others
from toolgrove.cli.checks.references import REFERENCE, ConfigText, config_texts
from toolgrove.config import Config
from toolgrove.errors import GroveError
from toolgrove.notation.secret_names import names_a_secret
from toolgrove.pool.secrets import Secrets


def check(config: Config) -> Iterator[Finding]:
    """Look at every reference, and at every literal that should be one."""
    found = list(config_texts(config))
    secrets = Secrets(config.secrets, folder=config.folder)
    for text in found:
        if text.references:
            yield from _reference(secrets, text, config)
        elif _is_literal_secret(text):
            yield _finding(
                "warning",
                text.field,
                "a secret seems to stand in the file itself; write ${env:NAME} and set that variable instead",
            )
    used = {name for text in found for _, name in text.references}
    for name in config.secrets:
        if name not in used:
            yield _finding("warning", f"secrets.{name}", "no server or tool refers to it; is the name right?")
        elif not config.secrets[name].tools:
            yield _finding("warning", f"secrets.{name}", "names no tools, so no tool may use it")


def _reference(secrets: Secrets, text: ConfigText, config: Config) -> Iterator[Finding]:
    try:
        secrets.fill(text.value, field=text.field, user=text.user)
    except GroveError as problem:
        yield _finding("error", text.field, problem.message)
        return
    for kind, name in text.references:
        scope = "scoped" if name in config.secrets else "for any tool: 'secrets' does not name it"
        yield _finding("ok", text.field, f"${{{kind}:{name}}} is set ({scope})")
        if kind == "file" and (who := open_to_others(config.folder / name)):
            yield _finding("warning", text.field, f"the file {name} can be read by {who}; chmod 600 it")


def _is_literal_secret(text: ConfigText) -> bool:
    if REFERENCE.search(text.value) or not text.value.strip():
        return False
    return (text.named and names_a_secret(text.key)) or looks_like_a_secret(text.value)


def _finding(level: Level, subject: str, message: str) -> Finding:
    return Finding(area="secrets", level=level, subject=subject, message=message)

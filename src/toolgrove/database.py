"""Where a project's database is, with the secrets of its address read."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlsplit

from toolgrove.config import Config
from toolgrove.pool.secrets import Secrets
from toolgrove.project_identity import known_project
from toolgrove.store.postgres import DatabaseAddress

_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_PLAIN = ":,"
"""What may stand in the value of a reference as it is: the list of hosts may be one."""


def database_of(config: Config, secrets: Secrets | None = None) -> DatabaseAddress | None:
    """The address that the project file names; None where its store is no database."""
    if not config.workspace.is_database:
        return None
    address = address_of(config.workspace.store, config, secrets)
    address.expected.known = known_project(config)
    return address


def address_of(text: str, config: Config, secrets: Secrets | None = None) -> DatabaseAddress:
    """The address that a text stands for in a project, its references read."""
    known = secrets or Secrets(config.secrets, folder=config.folder)

    def value(found: re.Match[str]) -> str:
        return quote(known.fill(found.group(), field="workspace.store", user="store"), safe=_PLAIN)

    filled = _REFERENCE.sub(value, text)
    if password := unquote(urlsplit(filled).password or ""):
        known.hide(password, name="workspace.store")
    return DatabaseAddress.of(filled, project=config.project)

"""The address of a database: `postgresql://…` as libpq reads it, and `schema`, which is ours."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from toolgrove.store.project import Expected

POSTGRESQL = "postgresql://"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_ODD = re.compile(r"[^a-z0-9_]+")
_LONGEST = 63


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseAddress:
    """Where a project's database is; `libpq` may hold a password, so only `told` is ever shown."""

    libpq: str = field(repr=False)
    schema: str
    told: str
    expected: Expected = field(default_factory=Expected, repr=False, compare=False)
    """Which project it has to lead to; whoever connects looks."""

    @classmethod
    def of(cls, text: str, *, project: str = "default") -> DatabaseAddress:
        """What a text says; a ValueError tells what is wrong with it, without the text."""
        if not text.startswith(POSTGRESQL):
            raise ValueError(f"the address of a database begins with {POSTGRESQL}, such as {POSTGRESQL}host/grove")
        try:
            parts = urlsplit(text)
            options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        except ValueError:
            raise ValueError("the address of the database cannot be read; write odd characters as %XX") from None
        schemas = [value for name, value in options if name == "schema"] or [schema_of(project)]
        if len(schemas) > 1 or not _SCHEMA.fullmatch(schemas[0]):
            raise ValueError("`schema` is one name of small letters, digits and _, such as ?schema=grove")
        rest = [(name, value) for name, value in options if name != "schema"]
        hosts = parts.netloc.rpartition("@")[2]
        return cls(
            libpq=urlunsplit(parts._replace(query=urlencode(rest, quote_via=quote), fragment="")),
            schema=schemas[0],
            told=f"{POSTGRESQL}{hosts}{parts.path}?schema={schemas[0]}",
        )


def schema_of(project: str) -> str:
    """The schema of a project that names none, so that several can share a database."""
    return f"toolgrove_{_ODD.sub('_', project.lower()).strip('_') or 'project'}"[:_LONGEST]

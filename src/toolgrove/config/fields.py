"""The smallest parts of the file: names, paths, and secrets by name alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema

from toolgrove.config.section import Section

MAX_NAME = 64
PATTERN = rf"^[A-Za-z0-9_-]{{1,{MAX_NAME}}}$"
FOLDER = "folder"
"""The key of the validation context under which the file's folder is handed down."""
_LEGAL = re.compile(PATTERN.removesuffix("$"))
_URL = re.compile(r"https?://", re.IGNORECASE)


def _legal(name: str) -> str:
    if _LEGAL.fullmatch(name) is None:
        near = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:MAX_NAME]
        hint = f"; {near!r} would do" if near else ""
        raise ValueError(f"a name has 1 to {MAX_NAME} of A-Z a-z 0-9 _ -{hint}")
    return name


Name = Annotated[str, AfterValidator(_legal), WithJsonSchema({"type": "string", "pattern": PATTERN})]
"""What an agent, a server or a tool may be called."""


def _of_a_server(pattern: str) -> str:
    server, colon, uris = pattern.partition(":")
    if not colon or not uris or _LEGAL.fullmatch(server) is None:
        raise ValueError("write the name of a server, a colon and a pattern of URIs, such as files:file:///data/*")
    return pattern


ResourcePattern = Annotated[
    str, AfterValidator(_of_a_server), WithJsonSchema({"type": "string", "pattern": rf"{PATTERN.removesuffix('$')}:."})
]
"""Which resources of a server."""


def folder_of(info: ValidationInfo) -> Path | None:
    """The folder of the file that is being read; None for a configuration built in memory."""
    return (info.context or {}).get(FOLDER)


def _located(path: Path, info: ValidationInfo) -> Path:
    folder = folder_of(info)
    path = path.expanduser()
    return path if folder is None else folder / path


Location = Annotated[Path, AfterValidator(_located)]
"""A path; a relative one starts at the file's own folder."""


def _placed(place: Path | str, info: ValidationInfo) -> Path | str:
    if isinstance(place, str) and _URL.match(place):
        return place
    return _located(Path(place), info)


Document = Annotated[str | Path, AfterValidator(_placed)]
"""A path, or the address of a document."""


class SecretConfig(Section):
    """A secret and the tools that may use it; its value is never in the file."""

    tools: tuple[str, ...] = Field(default=(), description="Patterns of the tools that may use it. Absent: none.")

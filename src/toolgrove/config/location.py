"""Paths in the file: relative ones start at the file's own folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

FOLDER = "folder"
"""The key of the validation context under which the file's folder is handed down."""


def folder_of(info: ValidationInfo) -> Path | None:
    """The folder of the file that is being read; None for a configuration built in memory."""
    return (info.context or {}).get(FOLDER)


def _located(path: Path, info: ValidationInfo) -> Path:
    folder = folder_of(info)
    path = path.expanduser()
    return path if folder is None else folder / path


Location = Annotated[Path, AfterValidator(_located)]

"""What is in a backup: a zip file with a manifest and one member for each file of a project."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from toolgrove.store.audit import Place
from toolgrove.store.unusable import StoreUnusable

FORMAT = 1
MANIFEST = "manifest.json"
STORE, STATE, LOG, ARCHIVE = "store.db", "state.db", "audit.jsonl", "archive.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Where a project keeps its files; None for those that it does not have."""

    store: Path
    state: Path | None = None
    log: Path | None = None
    archive: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """What a backup says of itself: when it was made, of which project it is, where its audit log ends, and
    the public half of its key.

    The last is for people: whoever can change the backup can change it as well.
    """

    made: str
    end: Place
    key: str = ""
    project: str = ""

    def write(self, file: ZipFile) -> None:
        """Put it into a backup."""
        named = {"project": self.project, "auditKey": self.key or None}
        form = {"format": FORMAT, "made": self.made, "anchor": str(self.end), **named}
        file.writestr(MANIFEST, json.dumps(form, indent=2) + "\n")

    @classmethod
    def read(cls, file: ZipFile, path: Path) -> Manifest:
        """What a backup says; raises StoreUnusable where it is none of ours, or too new."""
        try:
            form: Any = json.loads(file.read(MANIFEST))
            number, made, end = int(form["format"]), str(form["made"]), Place.read(str(form["anchor"]))
            key = str(form.get("auditKey") or "")
        except (KeyError, ValueError, TypeError):
            raise unreadable(path) from None
        if number > FORMAT:
            raise StoreUnusable(
                kind="backup",
                where=path,
                problem=f"has format {number}, and this Toolgrove reads up to {FORMAT}",
                advice="Upgrade Toolgrove.",
            )
        return cls(made=made, end=end, key=key)


def unreadable(path: Path) -> StoreUnusable:
    """A file that 'toolgrove backup' did not make, or that was damaged since."""
    advice = "Name a file that 'toolgrove backup' wrote."
    return StoreUnusable(kind="backup", where=path, problem="is damaged, or is no backup", advice=advice)

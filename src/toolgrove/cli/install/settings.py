"""A client's settings file: one entry is added to it, and everything else in it stays as it is."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from toolgrove.cli.install.client import Entry

_BOM = "\ufeff"
_OWN = 0o600
_AGENT_URL = re.compile(r"https?://[^/]+(?:/.*)?/agents/[^/]+/mcp")


@dataclass(frozen=True, kw_only=True, slots=True)
class Merged:
    """What became of the file."""

    path: Path
    changed: bool
    backup: Path | None = None


def merge(path: Path, section: str, name: str, entry: Entry) -> Merged:
    """Put an entry into a section of the file; ValueError says why that cannot be done without harm."""
    path = path.resolve()  # a link to a file of dotfiles stays one
    before, settings = room_for(path, section, name)
    servers = settings[section]
    if servers.get(name) == entry:
        return Merged(path=path, changed=False)
    servers[name] = entry
    return _write(path, before, settings)


def room_for(path: Path, section: str, name: str) -> tuple[str, dict[str, Any]]:
    """The text of the file and what it says, with the section in it; ValueError if the entry cannot go there."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    settings = _read(path, before)
    servers = settings.setdefault(section, {})
    if not isinstance(servers, dict):
        raise ValueError(f"{path}: {section!r} is not an object of servers, so nothing was written")
    if name in servers and not _is_ours(servers[name]):
        raise ValueError(f"{path} has another server called {name!r}; choose another name with --name")
    return before, settings


def _read(path: Path, text: str) -> dict[str, Any]:
    text = text.removeprefix(_BOM)
    if not text.strip():
        return {}
    try:
        settings = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except ValueError as problem:
        comments = " It has comments, which would be lost." if re.search(r"^\s*(//|/\*)", text, re.MULTILINE) else ""
        raise ValueError(
            f"{path} is not plain JSON ({problem}), so it is left alone.{comments} "
            "Add the entry by hand; without --write it is printed."
        ) from None
    if not isinstance(settings, dict):
        raise ValueError(f"{path} does not hold a JSON object, so it is left alone")
    return settings


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    form = dict(pairs)
    if len(form) < len(pairs):
        raise ValueError("a key stands there twice")
    return form


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_ours(entry: Any) -> bool:
    """Whether we wrote it, so that a new one may take its place."""
    if not isinstance(entry, Mapping):
        return False
    arguments = entry.get("args")
    if isinstance(arguments, list) and {"stdio", "--agent"} <= {one for one in arguments if isinstance(one, str)}:
        return True
    addresses = [entry.get(key) for key in ("url", "serverUrl", "httpUrl")]
    return any(isinstance(one, str) and _AGENT_URL.fullmatch(one) for one in addresses)


def _write(path: Path, before: str, settings: dict[str, Any]) -> Merged:
    """All or nothing, with the owner and the mode that the file had; a new one is its owner's alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    exists = path.exists()
    backup = path.with_name(path.name + ".bak") if exists else None
    if backup is not None:
        shutil.copy2(path, backup)
    text = json.dumps(settings, indent=_indent(before), ensure_ascii=False) + "\n"
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(_BOM * before.startswith(_BOM) + text)
            file.flush()
            os.fsync(file.fileno())
        if exists:
            _liken(Path(beside), path.stat())
        else:
            os.chmod(beside, _OWN)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    return Merged(path=path, changed=True, backup=backup)


def _liken(file: Path, wanted: os.stat_result) -> None:
    file.chmod(stat.S_IMODE(wanted.st_mode))
    if hasattr(os, "chown"):
        with contextlib.suppress(PermissionError):
            os.chown(file, wanted.st_uid, wanted.st_gid)


def _indent(text: str) -> int | str:
    """How the file is indented."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return 2 if found is None else "\t" if found[1].startswith("\t") else len(found[1])

"""A client's settings file: one entry is added to it, and everything else in it stays as it is."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolgrove.cli.install.client import ServerEntry
from toolgrove.notation import strict_json

_BOM = "\ufeff"
_OWN = 0o600
_AGENT_URL = re.compile(r"https?://[^/]+(?:/.*)?/agents/[^/]+/mcp")


@dataclass(frozen=True, kw_only=True, slots=True)
class MergedSettings:
    """The file after the merge, and where a copy of the old one is."""

    path: Path
    changed: bool
    backup: Path | None = None


def merge(path: Path, section: str, name: str, entry: ServerEntry) -> MergedSettings:
    """Put an entry into a section of the file; ValueError says why that cannot be done without harm."""
    before, settings = room_for(path, section, name)
    servers = settings[section]
    has_token = "headers" in entry
    if servers.get(name) == entry:
        if has_token:
            path.chmod(stat.S_IMODE(path.stat().st_mode) & _OWN)
        return MergedSettings(path=path, changed=False)
    servers[name] = entry
    return _write(path, before, settings, has_token=has_token)


def room_for(path: Path, section: str, name: str) -> tuple[str, dict[str, Any]]:
    """The text of the file and what it says, with the section in it; ValueError if the entry cannot go there."""
    before = _text(path)
    settings = _read(path, before)
    servers = settings.setdefault(section, {})
    if not isinstance(servers, dict):
        raise ValueError(f"{path}: {section!r} is not an object of servers, so nothing was written")
    if name in servers and not _is_ours(servers[name]):
        raise ValueError(f"{path} has another server called {name!r}; choose another name with --name")
    return before, settings


def _text(path: Path) -> str:
    """What the file says; a link on the way to it may lead anywhere, so none is followed."""
    home = (Path.home(), Path.cwd())
    for place in (path, *path.parents):
        if place in home:
            break
        if place.is_symlink():
            raise ValueError(
                f"{place} is a link, and --write follows none. Add the entry by hand where it leads; "
                "without --write it is printed."
            )
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return ""
    with open(descriptor, encoding="utf-8", newline="") as file:
        return file.read()


def _read(path: Path, text: str) -> dict[str, Any]:
    text = text.removeprefix(_BOM)
    if not text.strip():
        return {}
    try:
        settings = strict_json.decode(text, unique=True)
    except ValueError as problem:
        comments = (
            " It has comments, which would be lost." if re.search(r"^[^\S\n]*+(//|/\*)", text, re.MULTILINE) else ""
        )
        raise ValueError(
            f"{path} is not plain JSON ({problem}), so it is left alone.{comments} "
            "Add the entry by hand; without --write it is printed."
        ) from None
    if not isinstance(settings, dict):
        raise ValueError(f"{path} does not hold a JSON object, so it is left alone")
    return settings


def _is_ours(entry: Any) -> bool:
    """Whether we wrote it, so that a new one may take its place."""
    if not isinstance(entry, Mapping):
        return False
    arguments = entry.get("args")
    if str(entry.get("command")).endswith("apcore-mcp") or (isinstance(arguments, list) and "apcore_mcp" in arguments):
        return True
    words = [one for one in arguments if isinstance(one, str)] if isinstance(arguments, list) else []
    if "stdio" in words and {"--agent", "--config"} & set(words):
        return True
    addresses = [entry.get(key) for key in ("url", "serverUrl", "httpUrl")]
    return any(isinstance(one, str) and _AGENT_URL.fullmatch(one) for one in addresses)


def _write(path: Path, before: str, settings: dict[str, Any], *, has_token: bool) -> MergedSettings:
    """All or nothing, with the owner and the mode that the file had; a new one, or one with a token, is its owner's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    exists = path.exists()
    backup = _kept(path, before) if exists else None
    text = json.dumps(settings, indent=_indent(before), ensure_ascii=False) + "\n"
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(_BOM * before.startswith(_BOM) + text)
            file.flush()
            os.fsync(file.fileno())
        if exists:
            _liken(Path(beside), path.stat(), _OWN if has_token else 0o777)
        else:
            os.chmod(beside, _OWN)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    return MergedSettings(path=path, changed=True, backup=backup)


def _kept(path: Path, text: str) -> Path:
    """A copy under a name that nobody had before: earlier copies stay, and no planted link is followed."""
    number = 0
    while True:
        copy = path.with_name(f"{path.name}.bak{f'.{number}' if number else ''}")
        try:
            with open(copy, "x", encoding="utf-8", newline="", opener=_private) as file:
                file.write(text)
            return copy
        except FileExistsError:
            number += 1


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, _OWN)


def _liken(file: Path, wanted: os.stat_result, most: int) -> None:
    file.chmod(stat.S_IMODE(wanted.st_mode) & most)
    if hasattr(os, "chown"):
        with contextlib.suppress(PermissionError):
            os.chown(file, wanted.st_uid, wanted.st_gid)


def _indent(text: str) -> int | str:
    """The indentation of the file, to keep it."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return 2 if found is None else "\t" if found[1].startswith("\t") else len(found[1])

"""A project file that is read again and again; a bad one leaves the last good one in force."""

from __future__ import annotations

import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from toolgrove.config import document
from toolgrove.config.problems import ConfigError, Problem
from toolgrove.config.project import Config
from toolgrove.errors import Conflict


@dataclass(frozen=True, kw_only=True, slots=True)
class Reload:
    """What came of reading again: the configuration in force, whether it is a new one, and why not."""

    config: Config
    changed: bool
    problem: str = ""


class ConfigFile:
    """Remembers the last good configuration of a file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._seen = self._signature()
        text = document.read(self.path)
        self.config = Config.parse(text, self.path)
        self.digest = _digest(text)
        """The SHA-256 of the last good text."""
        self.problems: tuple[Problem, ...] = ()
        """Why the file as it is now is not in force; empty while it is."""

    def touched(self) -> bool:
        """Whether the file looks different from when it was last read; costs one look at the folder."""
        return self._signature() != self._seen

    def reload(self) -> Reload:
        """Read the file again; never raises for what is wrong with it."""
        self._seen = self._signature()
        try:
            text = document.read(self.path)
            digest = _digest(text)
            if digest == self.digest:
                self.problems = ()
                return Reload(config=self.config, changed=False)
            config = Config.parse(text, self.path)
        except ConfigError as error:
            self.problems = error.problems
            problem = f"{error}\nThe configuration that was read before stays in use."
            return Reload(config=self.config, changed=False, problem=problem)
        self.config, self.digest, self.problems = config, digest, ()
        return Reload(config=config, changed=True)

    def text(self) -> tuple[str, str]:
        """What the file says now, and its digest."""
        text = document.read(self.path)
        return text, _digest(text)

    def write(self, text: str, *, over: str) -> str:
        """Put a text in the place of the one with the digest `over`, whole and at once; the answer is its digest."""
        target = self.path.resolve()
        beside = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
        mode = target.stat().st_mode & 0o777
        try:
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            beside.chmod(mode)
            if self.text()[1] != over:
                raise Conflict(
                    "The project file has changed since you looked at it. Look again.", reason="file_changed"
                )
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
        return _digest(text)

    def _signature(self) -> tuple[int, int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

"""A project file that is read again and again; a bad one leaves the last good one in force."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from toolgrove.config import document
from toolgrove.config.problems import ConfigError
from toolgrove.config.project import Config


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
                return Reload(config=self.config, changed=False)
            config = Config.parse(text, self.path)
        except ConfigError as error:
            problem = f"{error}\nThe configuration that was read before stays in force."
            return Reload(config=self.config, changed=False, problem=problem)
        self.config, self.digest = config, digest
        return Reload(config=config, changed=True)

    def _signature(self) -> tuple[int, int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

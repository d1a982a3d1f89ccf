"""What the doctor found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["ok", "note", "warning", "error"]
Area = Literal["project", "secrets", "files", "audit", "servers", "tools", "agents", "runner", "tree"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One fact about one thing; an error keeps something from working, a warning is a risk."""

    area: Area
    level: Level
    subject: str
    message: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

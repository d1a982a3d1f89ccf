"""What is kept of requests that the edge refuses: enough to see who knocks, too little to fill a disk."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from starlette.types import Scope

from toolgrove.web.project import Project

Cause = Literal["host", "origin"]
PER_MINUTE = 10
MINUTE = 60.0
LENGTH = 100
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")
_WORDS = {
    "host": "A request was refused at the edge: its Host is none of ours. If it should be, add it with --allowed-host.",
    "origin": "A request was refused at the edge: a page of another origin sent it.",
}


@dataclass(kw_only=True, slots=True)
class _Minute:
    began: float = float("-inf")
    kept: int = 0
    omitted: int = 0

    def has_room(self, now: float) -> bool:
        if now - self.began >= MINUTE:
            self.began, self.kept = now, 0
        if self.kept >= PER_MINUTE:
            self.omitted += 1
            return False
        self.kept += 1
        return True


class Refusals:
    """Leaves audit records, a few per minute and cause; the next one tells how many there are none of."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._minutes: defaultdict[Cause, _Minute] = defaultdict(_Minute)

    async def tell(self, cause: Cause, scope: Scope) -> None:
        """Hear of a refusal."""
        minute = self._minutes[cause]
        if not minute.has_room(self._project.clock.monotonic()):
            return
        omitted, minute.omitted = minute.omitted, 0
        named = self._brief(b", ".join(value for name, value in scope["headers"] if name == cause.encode()))
        facts = {
            "code": "forbidden",
            "message": _WORDS[cause],
            "reason": f"{cause}_rejected",
            cause: named,
            "method": self._brief(scope["method"].encode()),
            "path": self._brief(scope["path"].encode("utf-8", "replace")),
            "from": (scope.get("client") or ("",))[0],
            "omitted": omitted,
        }
        await self._project.note(f"security.{cause}_rejected", targets=(named,) if named else (), error=facts)

    def _brief(self, said: bytes) -> str:
        """What a stranger said; scrubbed while it is whole, since half a secret is not found any more."""
        text = self._project.secrets.scrub_text(said.decode("utf-8", "replace"))
        return _UNPRINTABLE.sub("?", text[:LENGTH])

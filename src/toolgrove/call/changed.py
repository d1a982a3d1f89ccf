"""Says in an answer which policies changed it; what nothing changed is passed on as it is."""

from __future__ import annotations

from typing import Any

from toolgrove.types import RESULT_META, Call, Result

CHANGED = "toolgrove/changed"


def marked(call: Call, answer: Result) -> Result:
    """An answer that names the policies that changed it, in its `_meta`."""
    if not call.changed:
        return answer
    ours: dict[str, Any] = {CHANGED: sorted(call.changed)}
    if call.shortened is not None:
        ours[RESULT_META] = dict(call.shortened.meta)
    return {**answer, "_meta": {**(answer.get("_meta") or {}), **ours}}

"""Says in an answer which policies changed it; what nothing changed is passed on as it is."""

from __future__ import annotations

from toolgrove.types import Call, Result

CHANGED = "toolgrove/changed"


def marked(call: Call, answer: Result) -> Result:
    """An answer that names the policies that changed it, in its `_meta`."""
    if not call.changed:
        return answer
    return {**answer, "_meta": {**(answer.get("_meta") or {}), CHANGED: sorted(call.changed)}}

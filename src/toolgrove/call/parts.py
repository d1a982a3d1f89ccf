"""Lets no call do by its parts what it may not do by single calls: it needs what each of them needs."""

from __future__ import annotations

from collections.abc import Awaitable

from toolgrove.errors import PartNotGranted
from toolgrove.types import Call, Next, Result, Tool


def has_parts(tool: Tool) -> bool:
    """Whether a call of it takes the place of several."""
    return tool.stands_for is not None


def parts_step(call: Call, onward: Next) -> Awaitable[Result]:
    """Refuse a call if the agent has not the tool of one of its parts; if one of them needs an approval, so does it."""
    stands_for = call.granted.stands_for
    if stands_for is not None:
        parts, grants, rules_of = stands_for(call.arguments), call.grants or {}, call.rules or {}
        for tool, index in parts.items():
            if tool not in grants:
                raise PartNotGranted(tool=tool, index=index)
        rules = [f"{tool}: {rules_of[tool]}" for tool in parts if tool in rules_of]
        if rules:
            call.approval = "; ".join([*([] if call.approval is None else [call.approval]), *sorted(rules)])
    return onward(call)

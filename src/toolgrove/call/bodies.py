"""What is kept of a call's arguments and result: scrubbed, without what the tool's schema marks, cut to a size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from toolgrove.call.scrub import Scrubs, is_scrubbed
from toolgrove.call.sensitive import Sensitive, censored
from toolgrove.config import Recorded
from toolgrove.notation.half_characters import holds_half, may_hold_half, whole
from toolgrove.notation.json_value import compact_ascii, in_pieces
from toolgrove.store.audit import NO_BODIES, Bodies
from toolgrove.types import Call, Result, Tool, ToolSpec

_UNREADABLE = '{"unreadable":true}'
_LEAST: tuple[Recorded, ...] = ("none", "arguments", "full")
_NOTHING: list[str] = []
_UNTOLD = "The arguments do not fit the schema. What is wrong with them is not recorded: some of them are sensitive."


class _Plan(NamedTuple):
    """What is kept of the calls of one agent and tool, and which parts of it are hidden."""

    spec: ToolSpec
    kept: Recorded
    sensitive: Sensitive | None
    scrubbed: bool


class BodyWriter:
    """Writes bodies by a policy of agent and tool; `size` is the most that one may have before it is cut.

    Both are asked once, until `forget` is called, since every call comes through here.
    """

    def __init__(self, secrets: Scrubs, *, policy: Callable[[str, str], Recorded], size: Callable[[], int]) -> None:
        self._secrets = secrets
        self._policy = policy
        self._ask_size = size
        self.forget()

    def forget(self) -> None:
        """Ask again: the configuration has changed."""
        self._size = self._ask_size()
        self._plans: dict[tuple[str, str], _Plan] = {}

    def bodies(self, call: Call, result: Result | None) -> Bodies:
        """What is kept of a call; nothing if its tool does not exist, since no schema says what is sensitive."""
        if call.tool is None:
            return NO_BODIES
        _, kept, sensitive, scrubbed = self._plan(call, call.tool)
        if call.tool.stands_for is not None:
            parts = (self._policy(call.caller.agent, part) for part in call.tool.stands_for(call.arguments))
            kept = min((kept, *parts), key=_LEAST.index)
        if kept == "none":
            return NO_BODIES
        arguments, taken = call.arguments, _NOTHING
        if sensitive is not None:
            arguments, taken = sensitive.hidden(arguments)
        told = self._text(arguments, None, scrubbed=False, pieces=call.in_thread)
        if result is None or kept == "arguments":
            return Bodies(told)
        shown = censored(result, taken) if taken else result
        return Bodies(told, self._text(shown, call.text_of(shown), scrubbed=scrubbed, pieces=call.in_thread))

    def error(self, call: Call, error: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is kept of what the agent was told; a validator repeats what it was given."""
        sensitive = None if call.tool is None else self._plan(call, call.tool).sensitive
        if sensitive is None:
            return error
        if error.get("reason") == "schema":
            return {**{name: error[name] for name in ("code", "reason", "path") if name in error}, "message": _UNTOLD}
        told: Mapping[str, Any] = censored(error, sensitive.hidden(call.arguments)[1])
        return told

    def _text(self, value: Any, written: str | None, *, scrubbed: bool, pieces: bool) -> str:
        try:
            text = _json(value, pieces=pieces) if written is None else written
            if len(text) > self._size:  # what may be half a secret at the end is held back
                shown = self._secrets.stream().feed(text[: self._size])
                return _json({"cut": True, "bytes": len(text), "text": shown})
            clean = value if scrubbed else self._secrets.scrub(value)
            return text if clean is value else _json(clean)
        except (TypeError, ValueError, RecursionError):
            return _UNREADABLE

    def _plan(self, call: Call, tool: Tool) -> _Plan:
        spec, place = tool.spec, (call.caller.agent, call.name)
        plan = self._plans.get(place)
        if plan is None or plan.spec is not spec:
            sensitive = Sensitive(spec.input_schema)
            plan = _Plan(spec, self._policy(*place), sensitive or None, is_scrubbed(tool))
            self._plans[place] = plan
        return plan


def _json(value: Any, *, pieces: bool = False) -> str:
    """The value as plain JSON in ASCII; what Python calls NaN becomes a text."""
    text = in_pieces(value, compact_ascii) if pieces else compact_ascii(value)
    if "NaN" in text or "Infinity" in text:
        text = compact_ascii(json.loads(text, parse_constant=str))
    if may_hold_half(text) and holds_half(value):  # of a refused call, or of an older store
        text = compact_ascii(whole(json.loads(text)))
    return text

"""An answer that comes piece by piece, put together again."""

from __future__ import annotations

from typing import Any

from toolgrove.runners.chat import ModelAnswer, read_answer, words


class Pieces:
    """Takes the pieces of an answer as an endpoint streams them, in whatever way it cuts them."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._calls: list[dict[str, Any]] = []
        self._latest: dict[Any, int] = {}
        self._finish_reason: str | None = None
        self._usage: dict[str, Any] | None = None
        self._began = False

    def add(self, piece: Any) -> str:
        """Take a piece: the text that is new in it. ValueError if it is none."""
        if not isinstance(piece, dict):
            raise ValueError("a piece is not an object")
        self._usage = piece.get("usage") or self._usage
        choices = piece.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return ""  # it tells of usage alone, or of what a filter thinks of the question
        self._began = True
        self._finish_reason = choices[0].get("finish_reason") or self._finish_reason
        delta = choices[0].get("delta")
        return self._merge(delta) if isinstance(delta, dict) else ""

    def answer(self) -> ModelAnswer:
        """All pieces together; ValueError where they are no answer."""
        if not self._began:
            raise ValueError("no piece had a choice")
        message = {**self._message, "tool_calls": self._calls or None}
        choice = {"message": message, "finish_reason": self._finish_reason}
        return read_answer({"choices": [choice], "usage": self._usage})

    def _merge(self, delta: dict[str, Any]) -> str:
        text = words(delta.get("content"))
        for call in delta.get("tool_calls") or ():
            self._merge_call(call)
        for name, added in {**delta, "content": text, "tool_calls": None}.items():
            if added and isinstance(added, str | list):
                self._message[name] = _longer(self._message.get(name), added)
        return text

    def _merge_call(self, piece: Any) -> None:
        if not isinstance(piece, dict) or not isinstance(piece.get("function", {}), dict):
            raise ValueError("a call is not an object")
        call = self._call_of(piece)
        call.update({name: value for name, value in piece.items() if value and name != "function"})
        function = call.setdefault("function", {})
        for name, value in piece.get("function", {}).items():
            known = function.get(name)
            if name == "arguments" and isinstance(known, str) and isinstance(value, str):
                function[name] = known + value
            elif value:
                function[name] = value

    def _call_of(self, piece: dict[str, Any]) -> dict[str, Any]:
        """The call that a piece goes on with: the latest of its index, unless the piece begins another one.

        Some endpoints give all calls one index, or none.
        """
        index, name, own_id = piece.get("index"), piece.get("function", {}).get("name"), piece.get("id")
        known = self._calls[self._latest[index]] if index in self._latest else None
        is_another = known is None or (index is None and name) or (own_id and known.get("id") not in (None, own_id))
        if known is not None and not is_another:
            return known
        self._latest[index] = len(self._calls)
        self._calls.append({})
        return self._calls[-1]


def _longer(known: Any, added: Any) -> Any:
    return known + added if type(known) is type(added) else added

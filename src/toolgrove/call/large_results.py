"""Cuts results that are larger than the operator wants a model to read, and keeps the whole to be read on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import anyio.to_thread

from toolgrove.call.kept_results import KeptResults
from toolgrove.call.shortening import PER_TOKEN, shortened, shortened_lines, tokens
from toolgrove.giving_way import giving_way
from toolgrove.notation.json_schema import compiled
from toolgrove.notation.json_value import compact, text_size
from toolgrove.notation.strict_json import decode
from toolgrove.types import COMPLETE, GET_PROMPT, READ_RESOURCE, READ_RESULT, Call, Next, Result, Shortened, ToolSpec

CUT = "cut"
"""The policy that `_meta["toolgrove/changed"]` names."""
_NEVER = frozenset((READ_RESULT, READ_RESOURCE, GET_PROMPT, COMPLETE))
_LARGE = 256 * 1024
_NOTE = 60
"""Tokens that are kept free for saying that something was cut."""


class LargeResultStep:
    """Outside of the step that records: the record holds what the tool answered, the agent gets what it can read.

    `limit` says how many tokens an agent's results may have; None: any number. A call with a `maxTokens` of its own is
    not cut again. What is structured is cut only where it still fits the tool's output schema.
    """

    def __init__(self, kept: KeptResults, limit: Callable[[str], int | None]) -> None:
        self._kept = kept
        self._limit = limit
        self._validators: dict[str, tuple[ToolSpec, Any]] = {}

    def __call__(self, call: Call, onward: Next) -> Awaitable[Result]:
        most = self._limit(call.caller.agent)
        if most is None or call.tool is None or call.name in _NEVER:
            return onward(call)
        return self._bounded(call, onward, most)

    async def _bounded(self, call: Call, onward: Next, most: int) -> Result:
        result = await onward(call)
        if call.error is not None and not call.failed_by_itself:
            return result
        if isinstance(call.arguments, dict) and "maxTokens" in call.arguments:
            return result
        size = text_size(_read(call, result), enough=_LARGE)
        if size < most * PER_TOKEN // 2:
            return result
        if size < _LARGE:
            return self._cut(call, result, most)
        with giving_way():
            return await anyio.to_thread.run_sync(partial(self._cut, call, result, most))

    def _cut(self, call: Call, result: Result, most: int) -> Result:
        if call.granted.kind == "mcp":
            return self._cut_blocks(call, result, most)
        text = compact(result)
        if tokens(text) <= most:
            return result
        note = self._note(call, result, len(text), most)
        told = compact(shortened(result, most - _NOTE, marks=True))
        call.shortened = Shortened(text=f"{told}\n{note.text}", meta=note.meta)
        cut: Result = self._structured(call, result, most)
        return cut

    def _cut_blocks(self, call: Call, result: Result, most: int) -> Result:
        """The texts of an MCP server's answer are one document; pictures and links stay, and cost nothing here."""
        content: Sequence[dict[str, Any]] = result.get("content") or ()
        texts = [_text_of(block) for block in content]
        said = [text for text in texts if text is not None]
        whole = sum(map(len, said))
        structured = result.get("structuredContent")
        document = _document(said, structured)
        large = structured is not None and tokens(compact(structured)) > most
        if whole <= most * PER_TOKEN and not large:
            return result
        note = self._note(call, document, max(whole, text_size(document, enough=_LARGE * 64)), most)
        call.shortened = Shortened(text="", meta=note.meta)
        answer = dict(result)
        if whole > most * PER_TOKEN:
            cut = [
                _cut_block(block, text, (most - _NOTE) * len(text) // whole) for block, text in _with(content, texts)
            ]
            blocks = iter(cut)
            answer["content"] = [
                *(block if text is None else next(blocks) for block, text in zip(content, texts, strict=True)),
                {"type": "text", "text": note.text},
            ]
        else:
            answer["content"] = [*content, {"type": "text", "text": note.text}]
        if large:
            answer["structuredContent"] = self._structured(call, structured, most)
        return answer

    def _structured(self, call: Call, value: Any, most: int) -> Any:
        """The value cut, if that is still what the tool promises; else whole."""
        cut = shortened(value, most, marks=False)
        schema = call.granted.spec.output_schema
        return cut if not schema or self._valid(call.granted.spec, cut) else value

    def _valid(self, spec: ToolSpec, value: Any) -> bool:
        known = self._validators.get(spec.name)
        if known is None or known[0] is not spec:
            known = self._validators[spec.name] = (spec, compiled(spec.output_schema))
        return bool(known[1].is_valid(value))

    def _note(self, call: Call, document: Any, size: int, most: int) -> Shortened:
        """What is said about the cut, and how to read on where the agent can."""
        call.note_change(CUT)
        whole = -(-size // PER_TOKEN)
        facts: dict[str, Any] = {"tokensEstimate": whole, "maxTokens": most}
        cut = f"[Cut to about {most:,} of {whole:,} tokens."
        result_id = self._kept.keep(call.caller, document, size) if READ_RESULT in call.known else None
        if result_id is None:
            return Shortened(text=f"{cut} Ask for less.]", meta=facts)
        asked = compact({"resultId": result_id, "page": 1}).replace(":", ": ").replace(",", ", ")
        how = f"Read all of it page by page: {READ_RESULT} {asked}; or a part, by path or query.]"
        return Shortened(text=f"{cut} {how}", meta={"resultId": result_id, **facts})


def _read(call: Call, result: Result) -> Any:
    """What of a result a model reads as text; pictures and sounds do not count."""
    if call.granted.kind != "mcp":
        return result
    content = result.get("content")
    texts = [_text_of(block) for block in content] if isinstance(content, list) else []
    return [texts, result.get("structuredContent")]


def _text_of(block: dict[str, Any]) -> str | None:
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return str(block["text"])
    resource = block.get("resource")
    if isinstance(resource, dict) and isinstance(resource.get("text"), str):
        return str(resource["text"])
    return None


def _with(content: Sequence[dict[str, Any]], texts: Sequence[str | None]) -> list[tuple[dict[str, Any], str]]:
    return [(block, text) for block, text in zip(content, texts, strict=True) if text is not None]


def _cut_block(block: dict[str, Any], text: str, most: int) -> dict[str, Any]:
    value = _parsed(text)
    told = shortened_lines(text, most) if value is None else _fitting(value, text, most)
    if block.get("type") == "text":
        return {**block, "text": told}
    return {**block, "resource": {**block["resource"], "text": told}}


def _fitting(value: Any, text: str, most: int) -> str:
    return text if tokens(text) <= most else compact(shortened(value, most, marks=True))


def _parsed(text: str) -> Any:
    """The list or object that a text is; None for any other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return decode(text)
    except ValueError:
        return None


def _document(texts: Sequence[str], structured: Any) -> Any:
    """What can be read on: the data if there is some, else the text."""
    if structured is not None:
        return structured
    if len(texts) == 1:
        value = _parsed(texts[0])
        return texts[0] if value is None else value
    return {"texts": list(texts)}

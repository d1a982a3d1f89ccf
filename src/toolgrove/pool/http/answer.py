"""From the bytes of an answer to a result that is plain JSON."""

from __future__ import annotations

import re
from typing import Any

from toolgrove.errors import UpstreamFailed
from toolgrove.notation import strict_json
from toolgrove.notation.half_characters import whole_text
from toolgrove.pool.http.exchange import HttpAnswer
from toolgrove.types import Result

_NESTING = 100
_TEXT = re.compile(
    r"text/.*|application/(?:.*\+xml|xml|javascript|yaml|x-yaml|x-ndjson|graphql|x-www-form-urlencoded|toml|csv)"
)
_JSON = re.compile(r"(?:application|text)/(?:.*\+)?json")
_CHARSETS = {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "latin1", "windows-1252", "utf-16"}
_TOLD = ("link", "location")
_TOLD_OF_HEAD = ("content-type", "content-length", "etag", "last-modified", "link", "location")


class NotJsonText(ValueError):
    """A text that is not JSON, or is more than we pass on."""


def result_of(answer: HttpAnswer, *, tool: str, head: bool) -> Result:
    """The result of a call that succeeded."""
    result: Result = {"status": answer.status}
    kind = content_type(answer)
    if not answer.body:
        result["body"] = None
    elif _JSON.fullmatch(kind):
        try:
            result["body"] = read_json(answer.body)
        except NotJsonText as problem:
            raise UpstreamFailed(
                f"The server of {tool} says that it answers JSON, but {problem}. Tell the operator; do not retry.",
                reason="malformed",
                status=answer.status,
            ) from None
    else:
        result |= _other(answer, kind)
    told = {name: answer.headers[name] for name in (_TOLD_OF_HEAD if head else _TOLD) if name in answer.headers}
    return result | ({"headers": told} if told else {})


def content_type(answer: HttpAnswer) -> str:
    """The media type without its parameters."""
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower()


def text_of_body(answer: HttpAnswer) -> str:
    """The body as text, whatever it is."""
    found = re.search(r"charset=[\"']?([\w-]+)", answer.headers.get("content-type", ""), re.IGNORECASE)
    charset = found[1].lower() if found else "utf-8"
    text = answer.body.decode(charset if charset in _CHARSETS else "utf-8", "replace")
    return whole_text(text)


def read_json(data: bytes) -> Any:
    """A JSON value that can be written again without fail: finite numbers, whole characters, bounded depth."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotJsonText("its text is not UTF-8") from None
    try:
        return _sound(strict_json.decode(text, halves=True), _NESTING)
    except NotJsonText:
        raise
    except strict_json.NotANumber as problem:
        raise NotJsonText(str(problem)) from None
    except strict_json.TooDeep:
        raise NotJsonText(f"it is nested deeper than {_NESTING} levels") from None
    except ValueError:
        raise NotJsonText("it cannot be read") from None


def _other(answer: HttpAnswer, kind: str) -> Result:
    if kind == "" and b"\0" not in answer.body:
        try:
            return {"body": read_json(answer.body)}
        except NotJsonText:
            kind = "text/plain" if _is_utf8(answer.body) else "application/octet-stream"
    if _TEXT.fullmatch(kind):
        return {"body": text_of_body(answer), "contentType": kind}
    return {"body": None, "contentType": kind or "application/octet-stream", "bytes": len(answer.body)}


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _sound(value: Any, room: int) -> Any:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, dict | list) and not room:
        raise NotJsonText(f"it is nested deeper than {_NESTING} levels")
    if isinstance(value, dict):
        return {whole_text(key): _sound(item, room - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_sound(item, room - 1) for item in value]
    return value

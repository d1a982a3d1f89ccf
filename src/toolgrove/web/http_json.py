"""JSON in requests and answers: bodies that no form on a foreign page could send, and answers that are never cached."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from toolgrove.errors import GroveError, InvalidArgument
from toolgrove.notation import strict_json
from toolgrove.notation.half_characters import whole_text

if TYPE_CHECKING:
    from toolgrove.web.schemas import Body, ErrorCode

B = TypeVar("B", bound="Body")

log = logging.getLogger("toolgrove.serve")
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_STATUS = {
    "invalid_argument": 400,
    "not_found": 404,
    "forbidden": 403,
    "conflict": 409,
    "rate_limited": 429,
    "internal": 500,
}


class _Json(JSONResponse):
    """JSON of any text; of an older store it may hold half a character."""

    def render(self, content: Any) -> bytes:
        return encoded(json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def encoded(text: str) -> bytes:
    """JSON as bytes, with a replacement character for half of one."""
    return whole_text(text).encode()


async def json_body(request: Request) -> Any:
    """What the body says; None where it is not JSON."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise InvalidArgument("Send the body as Content-Type application/json.", reason="content_type")
    try:
        return strict_json.decode_utf8(await request.body())
    except ValueError:
        return None


async def body_of(request: Request, kind: type[B]) -> B:
    """The object that a request carries, held against what is asked for."""
    given = await json_body(request)
    try:
        return kind.model_validate(given)
    except ValidationError:
        fields = kind.model_fields.items()
        wanted = ", ".join(
            f"{field.alias or name}: {inspect.formatannotation(field.annotation)}" for name, field in fields
        )
        raise InvalidArgument(f"The body must be an object with {wanted}.", reason="body") from None


def answer(content: Any, status: int = 200) -> Response:
    """JSON that is not one of the schemas, or has a status other than 200."""
    return _Json(content, status, headers=HEADERS)


def problem(status: int, code: ErrorCode, message: str, *, headers: Mapping[str, str] | None = None) -> Response:
    """A refusal that says what to do next."""
    return _Json({"error": {"code": code, "message": message}}, status, headers={**HEADERS, **(headers or {})})


def failure(error: GroveError) -> Response:
    """An error of ours with the status that fits it."""
    unsupported = error.facts.get("reason") == "content_type"
    return answer(error.to_json(), 415 if unsupported else _STATUS[error.code])


def unkept(fault: OSError) -> Response:
    """The answer where a file that it takes cannot be read or written; only the log says which, and why."""
    log.error("a request was refused: %s", fault)
    return problem(503, "internal", "What the gateway keeps cannot be reached now. The operator's log says why.")


def event_text(event: Mapping[str, Any]) -> bytes:
    """A server-sent event; JSON has no bare line ends, so no event can hold another."""
    return encoded(f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n")


async def event_texts(events: AsyncIterator[Mapping[str, Any]]) -> AsyncIterator[bytes]:
    """Each of some events as a stream carries it."""
    async for event in events:
        yield event_text(event)


def stream(texts: AsyncIterator[bytes]) -> Response:
    """Server-sent events, as `event_text` writes them."""
    headers = {**HEADERS, "X-Accel-Buffering": "no"}
    return StreamingResponse(texts, media_type="text/event-stream", headers=headers)

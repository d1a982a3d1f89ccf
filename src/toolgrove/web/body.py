"""The JSON body of a request: nothing that a form on a foreign page could send."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from toolgrove.errors import InvalidArgument


async def json_body(request: Request) -> Any:
    """What the body says; None where it is not JSON."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise InvalidArgument("Send the body as Content-Type application/json.", reason="content_type")
    try:
        return await request.json()
    except (ValueError, RecursionError):
        return None

"""The JSON body of a request: nothing that a form on a foreign page could send."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json
from starlette.requests import Request

from toolgrove.errors import InvalidArgument


async def json_body(request: Request) -> Any:
    """What the body says; None where it is not JSON."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise InvalidArgument("Send the body as Content-Type application/json.", reason="content_type")
    try:
        return from_json(await request.body(), allow_inf_nan=False)
    except ValueError:
        return None

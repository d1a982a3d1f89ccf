"""The OpenAPI document, written from the table of operations and the schemas."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from toolgrove.web import schemas
from toolgrove.web.http_json import answer
from toolgrove.web.operations import OPERATIONS, Operation, Parameter

_REF = "#/components/schemas/{model}"
_MEANING = {
    400: "The request is wrong: fix it and retry.",
    401: "No valid token.",
    403: "This token may not.",
    404: "Not found, or not for this token.",
    405: "Not in this protocol era.",
    409: "Somebody was faster, or it has changed: read it again.",
    415: "The body is not application/json.",
    500: "It failed here, or at the server that was asked; the message says which.",
    503: "It cannot do its work now.",
}


async def show_document(request: Request) -> Response:
    """The document, open to everybody: it holds nothing that the documentation does not."""
    return answer(document())


@cache
def document() -> dict[str, Any]:
    """Every operation and every schema, as OpenAPI 3.1 has them."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        path = operation.path.replace(":path}", "}")
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Toolgrove gateway",
            "version": "1",
            "description": "Every agent of a project at its own address, and what the person needs who answers "
            "for them. Errors have the shape of Failure.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An agent's token opens that agent's addresses; the operator's opens all.",
                }
            },
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    open_to_all = operation.who == "everybody"
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.who],
        "parameters": [*_in_path(operation.path), *map(_in_query, operation.query)],
        "responses": {str(operation.status): _success(operation), **_refusals(operation)},
    }
    if open_to_all:
        described["security"] = []
    if operation.body is not None:
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _reference(operation.body)}},
        }
    return described


def _in_path(path: str) -> list[dict[str, Any]]:
    names = [part[1:-1].removesuffix(":path") for part in path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _in_query(parameter: Parameter) -> dict[str, Any]:
    return {"name": parameter.name, "in": "query", "description": parameter.meaning, "schema": parameter.schema}


def _success(operation: Operation) -> dict[str, Any]:
    given = operation.answer
    if given is None:
        return {"description": "Done." if operation.status == 200 else "Elsewhere."}
    if isinstance(given, str | tuple):
        media = (given,) if isinstance(given, str) else given
        return {"description": "The answer.", "content": {kind: {} for kind in media}}
    return {"description": "The answer.", "content": {"application/json": {"schema": _reference(given)}}}


def _refusals(operation: Operation) -> dict[str, Any]:
    by_token = {"everybody": (), "agent": (401,), "operator": (401, 403)}[operation.who]
    found: dict[str, Any] = {}
    for status in sorted({*operation.failures, *by_token}):
        model = schemas.Ready if status == 503 else schemas.Failure
        content = {"application/json": {"schema": _reference(model)}}
        found[str(status)] = {"description": _MEANING[status], "content": content}
    return found


def _reference(given: Any) -> dict[str, Any]:
    if _is_schema(given):
        return {"$ref": _REF.format(model=given.__name__)}
    schema: dict[str, Any] = TypeAdapter(given).json_schema(ref_template=_REF)
    schema.pop("$defs", None)
    return schema


def _schemas() -> dict[str, Any]:
    kinds = [kind for name, kind in vars(schemas).items() if name in schemas.__all__ and _is_schema(kind)]
    wanted = [(one, "validation", TypeAdapter(one)) for one in kinds if one not in (schemas.Answer, schemas.Body)]
    _, whole = TypeAdapter.json_schemas(wanted, ref_template=_REF)  # type: ignore[arg-type]
    found: dict[str, Any] = whole["$defs"]
    return found


def _is_schema(given: Any) -> bool:
    return isinstance(given, type) and issubclass(given, BaseModel | schemas.Answer)

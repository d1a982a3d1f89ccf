"""What a foreign tool definition must be like to enter the pool; what is wrong is refused, never repaired."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jsonschema_rs

from toolgrove.notation.json_schema import REFERENCES
from toolgrove.notation.json_value import canonical, text_size, texts
from toolgrove.notation.unseen_text import unseen, visible
from toolgrove.pool.naming import is_foreign_legal
from toolgrove.pool.schema_size import SchemaTooLarge, check_schema_size

MAX_BYTES = 64 * 1024
_FAR = 16 * MAX_BYTES
"""More than `text_size` can say of what has MAX_BYTES: it counts a value of one character as 16."""
MAX_DEPTH = 32
MAX_DESCRIPTION = 8 * 1024
MAX_TITLE = 256
MAX_PROPERTIES = 500
MAX_PATTERN = 1_000
_DIALECT = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/2019-09|draft/2020-12)/schema#?")
_TASKS = ("forbidden", "optional", "required")
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER = "x-mcp-header"
_ESCAPED = re.compile(r"\\[ubfr]|\x7f")


def definition_hash(raw: Mapping[str, Any]) -> str:
    """The hash of all that the server says about a tool, to the last invisible character."""
    try:
        text = "too large" if _is_far_too_large(raw) else canonical(raw)
    except (TypeError, ValueError, RecursionError):
        text = "not JSON"  # such a definition is refused, so no pin ever rests on this, nor on the other
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def check(raw: Any) -> list[str]:
    """The problems of one tool definition; an empty list means that it may enter the pool."""
    problem, text = _carried(raw)
    if problem:
        return [problem]
    problems = _hidden(raw, text)
    problems.extend(_identity(raw))
    problems.extend(_input_schema(raw.get("inputSchema")))
    if raw.get("outputSchema") is not None:
        problems.extend(_schema(raw["outputSchema"], "outputSchema"))
    problems.extend(_annotations(raw.get("annotations")))
    problems.extend(_execution(raw.get("execution")))
    if not isinstance(raw.get("_meta"), dict | None):
        problems.append("_meta is not an object")
    return [visible(problem) for problem in problems]


def check_words(raw: Any) -> list[str]:
    """The problems of another foreign definition, such as that of a resource, as far as it is words."""
    problem, text = _carried(raw)
    return [problem] if problem else [visible(problem) for problem in (*_hidden(raw, text), *_words(raw))]


def _carried(raw: Any) -> tuple[str, str]:
    """Why a definition cannot even be looked at, or else its JSON."""
    if not isinstance(raw, dict):
        return "it is not an object", ""
    if _depth_exceeds(raw, MAX_DEPTH):
        return f"it is nested deeper than {MAX_DEPTH} levels", ""
    if _is_far_too_large(raw):
        return f"it is larger than {MAX_BYTES // 1024} KiB", ""
    try:
        text = json.dumps(raw, ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except (TypeError, ValueError):  # UnicodeEncodeError is a ValueError
        return "it holds something that JSON cannot carry", ""
    return (f"it is larger than {MAX_BYTES // 1024} KiB", "") if size > MAX_BYTES else ("", text)


def _is_far_too_large(raw: Mapping[str, Any]) -> bool:
    """Whether it need not even be written down to know: that would be done in one go, and hold everybody up."""
    return text_size(raw, enough=_FAR) >= _FAR


def _hidden(raw: Mapping[str, Any], text: str) -> list[str]:
    return [] if text.isascii() and _ESCAPED.search(text) is None else list(_strings(raw))


def _depth_exceeds(raw: dict[str, Any], limit: int) -> bool:
    level: list[Any] = [raw]
    for _ in range(limit):
        level = [item for value in level for item in _children(value)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _identity(raw: Mapping[str, Any]) -> Iterator[str]:
    name = raw.get("name")
    if not isinstance(name, str) or not is_foreign_legal(name):
        yield "its name is not 1 to 128 characters of letters, digits, '_', '-', '.' and '/'"
    yield from _words(raw)


def _words(raw: Mapping[str, Any]) -> Iterator[str]:
    for key, limit in (("title", MAX_TITLE), ("description", MAX_DESCRIPTION)):
        text = raw.get(key)
        if text is None:
            continue
        if not isinstance(text, str):
            yield f"{key} is not a string"
        elif len(text) > limit:
            yield f"{key} is longer than {limit} characters"


def _strings(raw: Mapping[str, Any]) -> Iterator[str]:
    """Every string of the definition, keys included, that holds what no reader can see."""
    for path, text in texts(raw):
        found = unseen(text)
        if found is not None:
            yield f"{path} holds the {found}"


def _input_schema(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict) and schema.get("type") != "object":
        yield "inputSchema is not of type 'object'"
        return
    yield from _schema(schema, "inputSchema")


def _schema(schema: Any, where: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{where} is not an object"
        return
    problems = list(_parts(schema, where))
    yield from problems
    if not problems:
        yield from _compiled(schema, where)


def _parts(schema: Mapping[str, Any], where: str) -> Iterator[str]:
    """What no schema may hold anywhere, looked for without knowing the dialect."""
    properties = 0
    headers: set[str] = set()
    for path, node in _objects(schema, where):
        for keyword in REFERENCES:
            target = node.get(keyword)
            if isinstance(target, str) and not target.startswith("#"):
                yield f"{path} refers to another document ({keyword}), which is never fetched"
        base = node.get("$id")
        if isinstance(base, str) and not base.startswith("#") and path != where:
            yield f"{path} moves its base address ($id), which is not supported"
        dialect = node.get("$schema")
        if isinstance(dialect, str) and _DIALECT.fullmatch(dialect) is None:
            yield f"{path} is written in a dialect that is not known"
        pattern = node.get("pattern")
        if isinstance(pattern, str) and len(pattern) > MAX_PATTERN:
            yield f"{path} has a pattern of more than {MAX_PATTERN} characters"
        named = node.get("properties")
        if isinstance(named, dict):
            properties += len(named)
        if not isinstance(node.get(_HEADER, {}), dict):  # else a property has that name
            yield from _header(node, path, headers)
    if properties > MAX_PROPERTIES:
        yield f"{where} has more than {MAX_PROPERTIES} properties"


def _objects(value: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
        for key, item in value.items():
            yield from _objects(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _objects(item, f"{path}[{index}]")


def _header(node: Mapping[str, Any], path: str, taken: set[str]) -> Iterator[str]:
    name = node[_HEADER]
    if not isinstance(name, str) or _TOKEN.fullmatch(name) is None:
        yield f"{path} names a header ({_HEADER}) that is not an HTTP token"
        return
    if node.get("type") not in ("string", "integer", "boolean"):
        yield f"{path} sends something other than a string, integer or boolean as a header ({_HEADER})"
    if name.casefold() in taken:
        yield f"{path} names a header ({_HEADER}) twice"
    taken.add(name.casefold())


def _compiled(schema: Mapping[str, Any], where: str) -> Iterator[str]:
    try:
        check_schema_size(schema)
    except SchemaTooLarge:
        yield f"{where} becomes too large when its references are followed"
        return
    try:
        jsonschema_rs.validator_for(dict(schema), offline=True)
    except (ValueError, jsonschema_rs.ValidationError) as error:
        yield f"{where} is not a valid JSON Schema: {_brief(str(error))}"


def _brief(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= 160 else f"{line[:159]}…"


def _annotations(annotations: Any) -> Iterator[str]:
    if annotations is None:
        return
    if not isinstance(annotations, dict):
        yield "annotations is not an object"
        return
    for hint in _HINTS:
        if annotations.get(hint) is not None and not isinstance(annotations[hint], bool):
            yield f"annotations.{hint} is neither true nor false"
    title = annotations.get("title")
    if title is not None and (not isinstance(title, str) or len(title) > MAX_TITLE):
        yield f"annotations.title is not a string of at most {MAX_TITLE} characters"


def _execution(execution: Any) -> Iterator[str]:
    if execution is None:
        return
    if not isinstance(execution, dict):
        yield "execution is not an object"
    elif execution.get("taskSupport") not in (None, *_TASKS):
        yield f"execution.taskSupport is not one of {', '.join(_TASKS)}"

"""The operations of a document, each with the name and the policy of a tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urljoin

from toolgrove.config import HttpToolConfig
from toolgrove.config.http_tool import CHANGING
from toolgrove.pool.globs import Globs
from toolgrove.pool.http.openapi.credentials import missing
from toolgrove.pool.http.openapi.document import BadReference, OpenApiDocument, parse
from toolgrove.pool.http.openapi.own_name import OwnNamesOf, simplified
from toolgrove.pool.http.openapi.parameters import signature
from toolgrove.pool.http.openapi.schema import Schemas, TooMuch
from toolgrove.pool.http.openapi.selection import Selection, Traits
from toolgrove.pool.http.openapi.unfit import Unfit
from toolgrove.pool.http.operation import HttpOperation, Refused
from toolgrove.pool.http.url import BadUrl, UrlTemplate, parse_template, split_origin
from toolgrove.pool.naming import pool_name
from toolgrove.pool.offer import Unavailable
from toolgrove.pool.source_names import SourceNames

MAX_OPERATIONS = 1_500
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "query")
_MORE_METHODS = re.compile(r"(?!CONNECT\Z|TRACE\Z)[A-Z]{1,20}")
_REQUEST_BUDGET = 5_000
_ANSWER_BUDGET = 200
_DESCRIPTION = 1_000
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json(?:;.*)?", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadDocument:
    """The operations of a document in its order, and what the operator should mend in the entry."""

    operations: list[HttpOperation | Refused]
    notice: str = ""


def read_document(name: str, config: HttpToolConfig, data: bytes, home: str = "") -> ReadDocument:
    """What the bytes of an entry's document say; raises Unavailable if they are none."""
    document = parse(data, home)
    found = list(_found(document))
    if len(found) > MAX_OPERATIONS:
        raise Unavailable(f"the OpenAPI document has {len(found)} operations; at most {MAX_OPERATIONS} are read")
    names = OwnNamesOf((path, method, operation) for path, _, method, operation in found)
    reader = _Reader(name, config, document, names)
    operations = [reader.read(path, shared, method, operation) for path, shared, method, operation in found]
    taken = [told for (*_, told), read in zip(found, operations, strict=True) if isinstance(read, HttpOperation)]
    notices = [missing(name, config, document, taken, reader.base.text), *reader.selection.idle(reader.seen)]
    return ReadDocument(operations=operations, notice=" ".join(filter(None, notices)))


def _found(document: OpenApiDocument) -> Iterator[tuple[str, Mapping[str, Any], str, Mapping[str, Any]]]:
    paths = document.whole.get("paths")
    for path, shared in paths.items() if isinstance(paths, Mapping) else ():
        try:
            shared = document.followed(shared)
        except BadReference as problem:
            raise Unavailable(f"path {path!r} of the OpenAPI document: {problem}") from None
        if not isinstance(shared, Mapping):
            continue
        more = shared.get("additionalOperations")
        named = {method: shared.get(method) for method in _METHODS}
        named |= {name.lower(): one for name, one in _mapping(more).items() if _MORE_METHODS.fullmatch(name)}
        for method, operation in named.items():
            if isinstance(operation, Mapping):
                yield path, shared, method, operation


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


class _Reader:
    """What the operations of a document have in common."""

    def __init__(self, name: str, config: HttpToolConfig, document: OpenApiDocument, own_names: OwnNamesOf) -> None:
        self._name = name
        self._config = config
        self._document = document
        self.base = _base(config, document)
        self._reads = Globs(() if isinstance(config.reads, bool) else config.reads)
        self._given = frozenset(header.casefold() for header in config.headers)
        self._names = SourceNames(name, f"httpTools.{name}", config)
        self._own_names = own_names
        self.selection = Selection(f"httpTools.{name}", config)
        self.seen: list[Traits] = []

    def read(
        self, path: str, shared: Mapping[str, Any], method: str, operation: Mapping[str, Any]
    ) -> HttpOperation | Refused:
        """One operation as a tool, or why it cannot be one."""
        own_name, whole = self._own_names.of(path, method, operation)
        old_name = simplified(whole) if own_name == whole else whole
        formerly = pool_name(self._name, old_name) if old_name != own_name else ""
        tags = operation.get("tags")
        told = tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
        names = (own_name, whole, simplified(whole))
        self.seen.append(Traits(names=names, method=method, path=path, tags=told))
        refused = Refused(
            name=self._names.name(own_name, whole),
            own_name=own_name,
            reason=self.selection.left_out(self.seen[-1]),
            also=self._names.also(own_name),
            formerly=formerly,
            is_left_out=True,
        )
        if refused.reason:
            return refused
        try:
            return self._read(refused, path, shared, method, operation)
        except (BadUrl, BadReference, TooMuch, Unfit) as problem:
            return replace(refused, reason=f"{method.upper()} {path}: {problem}", is_left_out=False)

    def _read(
        self, known: Refused, path: str, shared: Mapping[str, Any], method: str, operation: Mapping[str, Any]
    ) -> HttpOperation:
        own_name = known.own_name
        if self._config.url is None and (operation.get("servers") or shared.get("servers")):
            raise Unfit("it names its own servers; set url in the entry to send every call to one host")
        url = self.base.below(path)
        schemas = Schemas(self._document, side="request", budget=_REQUEST_BUDGET)
        taken = signature(self._document, shared.get("parameters"), operation, schemas, self._given)
        in_path = {one.wire for one in taken.inputs if one.place == "path"}
        if url.slots != in_path:
            odd = sorted(url.slots ^ in_path)[0]
            raise Unfit(f"its path and its path parameters differ in {odd!r}")
        open_to_word = method.upper() not in CHANGING
        return HttpOperation(
            name=known.name,
            own_name=own_name,
            also=known.also,
            formerly=known.formerly,
            entry=f"httpTools.{self._name}",
            method=method.upper(),
            url=url,
            description=_description(operation, shared) or f"{method.upper()} {path}",
            input_schema=taken.schema(schemas.defs),
            answer=self._answer(operation),
            headers=self._config.headers,
            inputs=tuple(taken.inputs),
            body=taken.body,
            allow_private=self._config.allow_private,
            reads=open_to_word and bool(self._reads.matches(self._own_names.of(path, method, operation))),
            reads_if=f'httpTools.{self._name}.reads: ["{own_name}"]' if open_to_word else "",
        )

    def _answer(self, operation: Mapping[str, Any]) -> dict[str, Any] | None:
        """The schema of the answer, where there is one kind of success only and it is simple; else anything goes."""
        responses = operation.get("responses")
        good = [code for code in responses if code.startswith("2")] if isinstance(responses, Mapping) else []
        if not isinstance(responses, Mapping) or len(good) != 1 or not good[0].isdecimal():
            return None
        try:
            response = self._document.followed(responses[good[0]])
            content = response.get("content") if isinstance(response, Mapping) else None
            if not isinstance(content, Mapping) or len(content) != 1:
                return None
            [(media, inside)] = content.items()
            if not _JSON.fullmatch(media) or not isinstance(inside, Mapping) or "schema" not in inside:
                return None
            schemas = Schemas(self._document, side="response", budget=_ANSWER_BUDGET)
            schema = schemas.take(inside["schema"])
        except (BadReference, TooMuch):
            return None
        if not isinstance(schema, dict) or not schema:
            return None
        return {**schema, "$defs": schemas.defs} if schemas.defs else schema


def _base(config: HttpToolConfig, document: OpenApiDocument) -> UrlTemplate:
    try:
        base = parse_template(_server(document) if config.url is None else config.url)
        if base.slots:
            raise BadUrl(f"the base URL has a gap for {sorted(base.slots)[0]!r}, which no operation fills")
        if config.url is None and config.headers and base.origin != split_origin(document.home)[0]:
            raise BadUrl(
                f"it is {base.origin.authority}, not where the document is; headers are sent there only if url says so"
            )
    except BadUrl as problem:
        where = "url" if config.url is not None else "servers[0] of the document"
        raise Unavailable(f"{where}: {problem}") from None
    return base


def _server(document: OpenApiDocument) -> str:
    """The address of the API: the first server, or the place that the document came from where none is named."""
    servers = document.whole.get("servers")
    server = servers[0] if isinstance(servers, list) and servers else {"url": "/"} if document.home else None
    url = server.get("url") if isinstance(server, Mapping) else None
    if not isinstance(server, Mapping) or not isinstance(url, str):
        raise BadUrl("there is none: set url in the entry")
    if "${" in url:
        raise BadUrl("a document holds no references to secrets")
    variables = server.get("variables")
    for name, variable in variables.items() if isinstance(variables, Mapping) else ():
        default = variable.get("default") if isinstance(variable, Mapping) else None
        if isinstance(default, str | int):
            url = url.replace(f"{{{name}}}", str(default))
    if document.home:
        url = urljoin(document.home, url)
    if not url.lower().startswith(("http://", "https://")):
        raise BadUrl(f"{url!r} has no host: set url in the entry")
    return url


def _description(operation: Mapping[str, Any], shared: Mapping[str, Any]) -> str:
    told = [operation.get(key) or shared.get(key) for key in ("summary", "description")]
    texts = [text.strip() for text in told if isinstance(text, str) and text.strip()]
    if operation.get("deprecated") is True:
        texts.append("(deprecated)")
    text = "\n\n".join(dict.fromkeys(texts))
    return text if len(text) <= _DESCRIPTION else f"{text[:_DESCRIPTION]}…"

"""From a tool call to apcore's pipeline and back to a `CallToolResult`."""

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from apcore import CancelToken, Context, Executor, Identity
from apcore.cancel import ExecutionCancelledError
from apcore.errors import InvalidInputError, ModuleError, ModuleNotFoundError
from mcp_types import CallToolResult, TextContent

from apcore_mcp.adapters.errors import ErrorMapper, error_result, is_unexpected
from apcore_mcp.helpers import MCP_ELICIT_KEY, MCP_PROGRESS_KEY
from apcore_mcp.server.factory import Entry
from apcore_mcp.server.inputs import InputSchemas

logger = logging.getLogger(__name__)

MAX_OUTPUT = 16 * 1024 * 1024
UNSERIALIZABLE = "Failed to serialize module output"


class Caller(Protocol):
    """What a running module may ask of whoever called it."""

    identity: Identity | None
    token: CancelToken

    @property
    def wants_chunks(self) -> bool: ...

    async def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None: ...


class ExecutionRouter:
    """Routes every call through the executor's whole pipeline and never raises."""

    def __init__(
        self, executor: Executor, *, lookup: Callable[[str], Entry | None] | None = None, validate_inputs: bool = False
    ) -> None:
        self._executor = executor
        self._lookup = lookup
        self._errors = ErrorMapper()
        self._inputs = InputSchemas() if validate_inputs else None

    async def handle_call(
        self, tool_name: str, arguments: dict[str, Any] | None, caller: Caller | None = None
    ) -> CallToolResult:
        logger.debug("Tool call: %s", _printable(tool_name))
        arguments = {} if arguments is None else arguments
        entry = self._lookup(tool_name) if self._lookup else None
        schema = entry.tool.input_schema if entry else None
        try:
            if self._lookup and entry is None:
                raise ModuleNotFoundError(module_id=tool_name)
            _check_plain(arguments)
            if self._inputs and entry:
                self._inputs.check(entry.tool, arguments)
            output = await self._execute(tool_name, arguments, caller, entry)
        except Exception as error:
            _log_failure(tool_name, error)
            return self._errors.to_mcp_error(error, schema=schema, arguments=arguments)
        return _result(output, structured=entry is not None and entry.tool.output_schema is not None)

    async def _execute(
        self, tool_name: str, arguments: dict[str, Any], caller: Caller | None, entry: Entry | None
    ) -> Any:
        context: Context[Any] | None = None
        if caller is not None:
            data = {MCP_PROGRESS_KEY: caller.progress, MCP_ELICIT_KEY: caller.elicit}
            context = Context.create(identity=caller.identity, cancel_token=caller.token, data=data)
            annotations = entry.descriptor.annotations if entry else None
            if caller.wants_chunks and getattr(annotations, "streaming", False):
                return await self._stream(tool_name, arguments, context, caller)
        return await self._executor.call_async(tool_name, arguments, context)

    async def _stream(self, tool_name: str, arguments: dict[str, Any], context: Any, caller: Caller) -> dict[str, Any]:
        complete: dict[str, Any] = {}
        count = 0
        async for chunk in self._executor.stream(tool_name, arguments, context):
            if caller.token.is_cancelled:
                raise ExecutionCancelledError
            count += 1
            _merge(complete, chunk)
            await caller.progress(count, None, json.dumps(chunk, default=str, ensure_ascii=False))
        return complete


def _merge(complete: dict[str, Any], chunk: Mapping[str, Any]) -> None:
    """apcore's own rule for chunks: objects merge, everything else is replaced."""
    for key, value in chunk.items():
        if isinstance(value, dict) and isinstance(complete.get(key), dict):
            _merge(complete[key], value)
        else:
            complete[key] = dict(value) if isinstance(value, dict) else value


def _result(output: Any, *, structured: bool) -> CallToolResult:
    try:
        text = json.dumps(output, default=str, ensure_ascii=False, allow_nan=False)
        size = len(text.encode())  # refuses lone surrogates, which no JSON reader accepts
    except Exception:  # whatever an object's __str__ may raise
        logger.exception("Module output cannot be serialized")
        return error_result(UNSERIALIZABLE)
    if size > MAX_OUTPUT:
        return error_result(
            f"Module output is too large: {size} bytes, the limit is {MAX_OUTPUT}. Ask for less, or in parts."
        )
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=json.loads(text) if structured and isinstance(output, dict) else None,
        is_error=False,
    )


def _check_plain(arguments: Any) -> None:
    """Refuse what JSON cannot carry: NaN, lone surrogates, bottomless nesting."""
    if not isinstance(arguments, dict):
        raise InvalidInputError(message="arguments must be an object")
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError, TypeError):
        raise InvalidInputError(
            message="arguments must be plain JSON: finite numbers, whole characters, moderate nesting"
        ) from None


def _log_failure(tool_name: str, error: Exception) -> None:
    cause = error.__cause__ if is_unexpected(error) and isinstance(error, ModuleError) else None
    logger.error(
        "Tool call error: %s - %s: %s",
        _printable(tool_name),
        type(error).__name__,
        getattr(error, "message", None) or error,
        exc_info=(cause or error) if is_unexpected(error) else None,
    )


def _printable(name: str) -> str:
    """A client's text, fit for one line of a log."""
    return name if name.isprintable() and len(name) <= 200 else ascii(name[:200])

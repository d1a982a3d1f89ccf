"""From a tool call to apcore's pipeline and back to a `CallToolResult`."""

import contextlib
import json
import logging
from collections.abc import Callable
from typing import Any

from apcore import CancelToken, Context, Executor, Identity
from apcore.cancel import ExecutionCancelledError
from apcore.errors import InvalidInputError, ModuleNotFoundError, SchemaValidationError
from jsonschema import Draft202012Validator
from mcp_types import CallToolResult, TextContent

from apcore_files.module_runs import contain, ends_us, ordinary
from apcore_mcp.adapters.errors import ErrorMapper, is_unexpected
from apcore_mcp.helpers import MCP_ELICIT_KEY, MCP_PROGRESS_KEY
from apcore_mcp.modules import Json
from apcore_mcp.server.factory import ModuleEntry
from mcp_serve.calls import ToolRun
from mcp_serve.sdk_forms import error_result

logger = logging.getLogger(__name__)

Lookup = Callable[[str], ModuleEntry | None]
MAX_OUTPUT = 16 * 1024 * 1024
NOT_PLAIN = "arguments must be plain JSON: finite numbers, whole characters, moderate nesting"


class ExecutionRouter:
    """Routes every call through the executor's whole pipeline and never raises."""

    def __init__(self, executor: Executor, *, lookup: Lookup | None = None, validate_inputs: bool = False) -> None:
        contain(executor)
        self._executor = executor
        self._lookup = lookup
        self._validate_inputs = validate_inputs

    async def handle_call(self, name: str, arguments: Json | None, caller: ToolRun | None = None) -> CallToolResult:
        """Run a module; without a lookup any module of the registry may be called, without a caller nobody is asked."""
        logger.debug("Tool call: %s", _printable(name))
        arguments = {} if arguments is None else arguments
        entry = self._lookup(name) if self._lookup else None
        try:
            if self._lookup and entry is None:
                raise ModuleNotFoundError(module_id=name)
            _check_plain(arguments)
            if self._validate_inputs and entry:
                _check_schema(entry.tool.input_schema, arguments)
            output = await self._execute(name, arguments, caller, entry)
        except BaseException as raised:
            if ends_us(raised):
                raise
            is_illegal = getattr(raised, "code", None) == "INVALID_MODULE_ID"
            error = ModuleNotFoundError(module_id=name) if is_illegal else ordinary(raised)
            _log_failure(name, error)
            return ErrorMapper().to_mcp_error(error, self._input_schema(name, entry), arguments)
        return _result(output, structured=entry is not None and entry.tool.output_schema is not None)

    async def _execute(self, name: str, arguments: Json, caller: ToolRun | None, entry: ModuleEntry | None) -> Any:
        if caller is None:
            return await self._executor.call_async(name, arguments)
        context = _context(caller)
        streams = entry is not None and getattr(entry.descriptor.annotations, "streaming", False)
        if streams and caller.channel.wants_chunks and getattr(self._executor, "stream", None) is not None:
            return await self._stream(name, arguments, caller, context)
        return await self._executor.call_async(name, arguments, context)

    async def _stream(self, name: str, arguments: Json, caller: ToolRun, context: Context[Any]) -> Json:
        complete: Json = {}
        count = 0
        async for chunk in self._executor.stream(name, arguments, context):
            if caller.is_cancelled:
                raise ExecutionCancelledError
            count += 1
            _merge(complete, chunk)
            await caller.progress(count, None, json.dumps(chunk, default=str, ensure_ascii=False))
        return complete

    def _input_schema(self, name: str, entry: ModuleEntry | None) -> Json | None:
        if entry is not None:
            return entry.tool.input_schema
        with contextlib.suppress(Exception):  # without a table, ask the registry; it may not know either
            definition = self._executor.registry.get_definition(name)
            return None if definition is None else definition.input_schema
        return None


def _context(caller: ToolRun) -> Context[Any]:
    """A context of its own for each call: who asks, what the module may ask of its client, and whether to go on."""
    token = CancelToken()
    caller.on_cancel(token.cancel)
    user = caller.user
    return Context.create(
        identity=None if user is None else Identity(id=user.id, roles=user.scopes),
        cancel_token=token,
        data={MCP_PROGRESS_KEY: caller.progress, MCP_ELICIT_KEY: caller.elicit},
    )


def _merge(complete: Json, chunk: Json) -> None:
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
        return error_result("Failed to serialize module output")
    if size > MAX_OUTPUT:
        return error_result(f"Module output has {size} bytes, the limit is {MAX_OUTPUT}. Ask for less, or in parts.")
    structure = json.loads(text) if structured and isinstance(output, dict) else None
    return CallToolResult(content=[TextContent(text=text)], structured_content=structure, is_error=False)


def _check_plain(arguments: Any) -> None:
    if not isinstance(arguments, dict):
        raise InvalidInputError(message="arguments must be an object")
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError, TypeError):
        raise InvalidInputError(message=NOT_PLAIN) from None


def _check_schema(schema: Json, arguments: Json) -> None:
    """Every violation at once, told without repeating a value, which may be a secret."""
    errors = [
        {
            "path": "/".join(map(str, error.absolute_path)),
            "keyword": error.validator,
            "message": f"must satisfy {error.validator} {error.validator_value!r:.100}",
        }
        for error in Draft202012Validator(schema).iter_errors(arguments)
    ]
    if errors:
        raise SchemaValidationError(message="Input validation failed", errors=errors)


def _log_failure(name: str, error: Exception) -> None:
    # After ": [" apcore repeats the values that a schema refused.
    text = str(getattr(error, "message", None) or error).partition(": [")[0]
    trace = error if is_unexpected(error) else None
    logger.error(
        "Tool call error: %s - %s: %s", _printable(name), type(error).__name__, _printable(text), exc_info=trace
    )


def _printable(text: str) -> str:
    """Foreign text, made fit for one line of a log."""
    return text if text.isprintable() and len(text) <= 200 else ascii(text[:200])

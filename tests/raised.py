"""Modules that raise and answer whatever a test names, and what a client is to be told: a table, not a copy of code."""

from __future__ import annotations

import asyncio
import builtins
import concurrent.futures
from collections.abc import AsyncIterator, Callable
from typing import Any

from apcore import ModuleAnnotations, Registry
from apcore import errors as apcore_errors
from apcore.cancel import ExecutionCancelledError
from pydantic import BaseModel

Json = dict[str, Any]
SECRET = "sk-live-4242"
"""In every message of an error, and in none of what a client is told."""
INTERNAL = "Internal error occurred"


class PanicException(BaseException):
    """What a module in Rust raises when it panics."""


class Unprintable(Exception):
    """An error that fails when somebody asks what it is."""

    def __str__(self) -> str:
        raise KeyboardInterrupt(SECRET)

    __repr__ = __str__


class UnprintableEnd(BaseException):
    """The same, as an end."""

    def __str__(self) -> str:
        raise SystemExit(SECRET)

    __repr__ = __str__


def _made(kind: type[BaseException]) -> BaseException:
    """An error of the kind, with whatever its constructor takes."""
    attempts: list[tuple[Any, ...]] = [
        (SECRET,),
        (SECRET, [ValueError(SECRET)]),
        ("utf-8", b"\xff", 0, 1, SECRET),
        ("x", 0, 1, SECRET),
        (),
    ]
    for arguments in attempts:
        try:
            return kind(*arguments)
        except TypeError:
            continue
    raise AssertionError(f"how is {kind} made?")


def _raised(inner: BaseException) -> BaseException:
    try:
        raise inner from _made(ValueError)
    except BaseException as error:
        return error


UNEXPECTED: dict[str, Callable[[], BaseException]] = {
    **{
        name: lambda kind=kind: _made(kind)  # type: ignore[misc]
        for name, kind in vars(builtins).items()
        if isinstance(kind, type) and issubclass(kind, BaseException)
    },
    "asyncio.CancelledError": lambda: asyncio.CancelledError(SECRET),
    "asyncio.QueueEmpty": lambda: asyncio.QueueEmpty(SECRET),
    "asyncio.InvalidStateError": lambda: asyncio.InvalidStateError(SECRET),
    "asyncio.IncompleteReadError": lambda: asyncio.IncompleteReadError(SECRET.encode(), 99),
    "futures.CancelledError": lambda: concurrent.futures.CancelledError(SECRET),
    "futures.BrokenExecutor": lambda: concurrent.futures.BrokenExecutor(SECRET),
    "PanicException": lambda: PanicException(SECRET),
    "Unprintable": Unprintable,
    "UnprintableEnd": UnprintableEnd,
    "half a character": lambda: ValueError(SECRET + "\ud800"),
    "lines": lambda: ValueError(f"{SECRET}\n{SECRET}\x00\x1b[31m"),
    "long": lambda: ValueError(SECRET * 1_000),
    "group of ends": lambda: BaseExceptionGroup(SECRET, [KeyboardInterrupt(SECRET), PanicException(SECRET)]),
    "group of errors": lambda: ExceptionGroup(SECRET, [TimeoutError(SECRET), StopIteration(SECRET)]),
    "caused": lambda: _raised(RuntimeError(SECRET)),
    "caused end": lambda: _raised(KeyboardInterrupt(SECRET)),
}
"""Errors that apcore does not define: a client is told that something failed inside, and nothing else."""

STATED: dict[str, tuple[Callable[[], BaseException], str]] = {
    "not found": (lambda: apcore_errors.ModuleNotFoundError(module_id="other.one"), "Module not found: other.one"),
    "denied": (lambda: apcore_errors.ACLDeniedError(caller_id=SECRET, target_id=SECRET), "Access denied"),
    "timed out": (
        lambda: apcore_errors.ModuleTimeoutError(module_id="other.one", timeout_ms=70),
        "Module timed out after 70ms",
    ),
    "invalid": (lambda: apcore_errors.InvalidInputError(message="end before begin"), "Invalid input: end before begin"),
    "depth": (
        lambda: apcore_errors.CallDepthExceededError(depth=3, max_depth=2, call_chain=[SECRET]),
        "Call depth limit exceeded",
    ),
    "circle": (
        lambda: apcore_errors.CircularCallError(module_id=SECRET, call_chain=[SECRET]),
        "Circular call detected",
    ),
    "frequency": (
        lambda: apcore_errors.CallFrequencyExceededError(module_id=SECRET, count=3, max_repeat=2, call_chain=[SECRET]),
        "Call frequency limit exceeded",
    ),
    "cancelled": (ExecutionCancelledError, "Module error: EXECUTION_CANCELLED"),
    "own code": (lambda: apcore_errors.ModuleError(code="QUOTA_SPENT", message=SECRET), "Module error: QUOTA_SPENT"),
    "half a code": (lambda: apcore_errors.ModuleError(code="A\ud800", message=SECRET), "Module error: A?"),
    "half a sentence": (lambda: apcore_errors.InvalidInputError(message="a\ud800"), "Invalid input: a?"),
    "field": (
        lambda: apcore_errors.SchemaValidationError(
            errors=[{"field": "end", "code": "order", "message": "before begin"}]
        ),
        "Input validation failed:\n- end: before begin (order)",
    ),
    "no details": (lambda: _without_details(apcore_errors.ModuleError(code="QUOTA", message=SECRET)), INTERNAL),
    "odd fields": (
        lambda: apcore_errors.SchemaValidationError(errors=["text"]),  # type: ignore[list-item]
        "Input validation failed:\n- input: invalid (invalid)",
    ),
}
"""Errors that apcore defines, each with its text of the specification."""


def _without_details(error: Any) -> BaseException:
    error.details = None
    return error  # type: ignore[no-any-return]


TOLD: dict[str, str] = {**dict.fromkeys(UNEXPECTED, INTERNAL), **{kind: text for kind, (_, text) in STATED.items()}}
"""Every error by its name, and what a client of the bridge is told."""


def error_named(kind: str) -> BaseException:
    return UNEXPECTED[kind]() if kind in UNEXPECTED else STATED[kind][0]()


class Named(BaseModel):
    kind: str


class Anything(BaseModel, extra="allow"):
    pass


class _Raiser:
    description = "Raises what is named."
    input_schema = Named
    output_schema = Anything


class Sync(_Raiser):
    def execute(self, inputs: Json, context: Any) -> Json:
        raise error_named(inputs["kind"])


class Async(_Raiser):
    async def execute(self, inputs: Json, context: Any) -> Json:
        raise error_named(inputs["kind"])


class Later(_Raiser):
    async def execute(self, inputs: Json, context: Any) -> Json:
        await asyncio.sleep(0)
        raise error_named(inputs["kind"])


class Slotted:
    """A module that nobody can give another method."""

    __slots__ = ()
    description = "Raises what is named."
    input_schema = Named
    output_schema = Anything

    async def execute(self, inputs: Json, context: Any) -> Json:
        raise error_named(inputs["kind"])


class Nested(_Raiser):
    """Calls another module, which raises."""

    async def execute(self, inputs: Json, context: Any) -> Json:
        called: Json = await context.executor.call_async("raise.sync", inputs, context)
        return called


class Streaming(_Raiser):
    annotations = ModuleAnnotations(streaming=True)

    async def execute(self, inputs: Json, context: Any) -> Json:
        raise error_named(inputs["kind"])

    async def stream(self, inputs: Json, context: Any) -> AsyncIterator[Json]:
        yield {"begun": True}
        raise error_named(inputs["kind"])


class Echo:
    description = "Says it again."
    input_schema = Named
    output_schema = Named

    def execute(self, inputs: Json, context: Any) -> Json:
        return inputs


FORMS: dict[str, Callable[[], Any]] = {
    "raise.sync": Sync,
    "raise.async": Async,
    "raise.later": Later,
    "raise.slotted": Slotted,
    "raise.nested": Nested,
    "raise.streaming": Streaming,
}
"""The modules that raise, by the way in which they run."""


def raising_registry() -> Registry:
    """The modules that raise, and one that never does."""
    registry = Registry()
    for module_id, make in FORMS.items():
        registry.register(module_id, make())
    registry.register("echo", Echo())
    return registry


REFUSED = {"denied": ("forbidden", "acl"), "timed out": ("internal", "timeout")} | dict.fromkeys(
    ("invalid", "half a sentence", "field", "odd fields"), ("invalid_argument", "schema")
)
"""What an agent of the gateway is told of errors that are more to it than faults of the module: code and reason."""


def refused(form: str, kind: str) -> tuple[str, str]:
    """Code and reason that an agent of the gateway is told."""
    is_of_another = form == "raise.nested" and kind in ("field", "odd fields")
    return REFUSED.get(kind if not is_of_another else "", ("internal", "module_error"))

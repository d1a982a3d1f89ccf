"""Modules that fail alone: whatever one raises and however it ends, its call gets an ordinary error.

Whoever serves the modules of a registry has their executor `contain`ed, and may then rely on this:

- What a module raises never ends the loop, a thread or the process, and never means to apcore or asyncio what it would
  mean if they had raised it: a `TimeoutError` is no time-out, a `CancelledError` no cancellation.
- A module that is not async runs in a thread that nobody waits for, neither a loop that closes nor the process. As many
  run at a time as asyncio would let, in each loop; who counts them himself says so by `OCCUPIES`.
- An output that its schema refuses is told as that. Keys that are no strings are checked as JSON writes them.

Nothing of a module is changed: who calls it by himself finds it as it was. What we rely on in apcore is that a strategy
has its steps in a list, that a step is run by its `execute`, and that `execute` runs `ctx.module` and
`output_validation` checks `ctx.output`; tests/unit/test_dependency_insides.py says what moved.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from apcore import Executor
from apcore.errors import ModuleError, SchemaValidationError
from apcore.pipeline import StepResult
from apcore.streaming import StreamingModule

OCCUPIES = "_module_occupies"
"""Where a context has the function to call when a thread begins; it answers what to call when that ends."""
AT_A_TIME = min(32, (os.cpu_count() or 1) + 4)
_KEPT = 16
_MARK = "_is_contained"
Work = Callable[[], None]


class ModuleEnded(RuntimeError):
    """A module raised what would have ended those who run it, or have meant something else to them."""


def contain(executor: Executor) -> None:
    """Let the modules that this executor runs fail alone from now on."""
    steps: list[Any] = getattr(getattr(executor, "current_strategy", None), "steps", [])
    for step in steps:
        around = _AROUND.get(step.name)
        if around is not None and not hasattr(step.execute, _MARK):
            step.execute = around(step.execute)
            setattr(step.execute, _MARK, True)


def needs_thread(module: Any) -> bool:
    """Whether a module is not async."""
    execute = getattr(module, "execute", None)
    return execute is not None and not inspect.iscoroutinefunction(execute)


def ends_us(error: BaseException) -> bool:
    """Whether an error ends whoever meets it, because his task is cancelled or gone, and is no failure of a module."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if isinstance(error, asyncio.CancelledError):
        return task is None or task.cancelling() > 0
    return isinstance(error, GeneratorExit) and task is None


def ordinary(error: BaseException) -> Exception:
    """The error itself if it can be passed on and told; else one that can, with this as its cause."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration | TimeoutError):
        with suppress(BaseException):
            str(error)
            return error
    ended = ModuleEnded(f"the module ended with {type(error).__name__}")
    ended.__cause__ = error
    return ended


class _Contained:
    """A module for the time of one run."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    async def execute(self, inputs: dict[str, Any], context: Any) -> Any:
        """Run the module, and raise nothing but ordinary errors."""
        execute = self._module.execute
        try:
            if needs_thread(self._module):
                return await _in_thread(functools.partial(execute, inputs, context), _counted_in(context))
            return await execute(inputs, context)
        except BaseException as error:
            if ends_us(error):
                raise
            if isinstance(error, SchemaValidationError) and "module_id" in (error.details or ()):
                # Another module refused what this one gave it, which nobody told this client.
                raise ModuleError(error.code, "a module that it called failed validation", cause=error) from error
            failure = ordinary(error)
            if failure is error:
                raise
            raise failure from error


def _running(execute: Any) -> Any:
    @functools.wraps(execute)
    async def run(ctx: Any) -> Any:
        module = ctx.module
        if module is not None and not (ctx.stream and isinstance(module, StreamingModule)):
            ctx.module = _Contained(module)
        try:
            return await execute(ctx)
        finally:
            ctx.module = module

    return run


def _checking(execute: Any) -> Any:
    @functools.wraps(execute)
    async def check(ctx: Any) -> Any:
        try:
            return await execute(ctx)
        except Exception as error:
            if not _has_odd_keys(ctx.output):
                raise _output_fault(error) from error
            # A pydantic model was content with the keys as they are: it is what comes after that knows only strings.
            was_valid = isinstance(ctx.module.output_schema, type) and not isinstance(error, SchemaValidationError)
        ctx.output = ctx.validated_output = with_text_keys(ctx.output)
        try:
            return await execute(ctx)
        except SchemaValidationError as error:
            if was_valid:
                return StepResult(action="continue")
            raise _output_fault(error) from error

    return check


_AROUND = {"execute": _running, "output_validation": _checking}


def _output_fault(error: Exception) -> Exception:
    """The fault in words that blame the output; apcore says "Input" for plain JSON Schemas."""
    if not isinstance(error, SchemaValidationError) or error.message.startswith("Output"):
        return error
    errors = error.details.get("errors")
    return SchemaValidationError(message=f"Output validation failed: {errors}", errors=errors)


def _has_odd_keys(value: Any) -> bool:
    return any(not isinstance(key, str) for each in _objects(value) for key in each)


def _objects(value: Any) -> Iterator[dict[Any, Any]]:
    if isinstance(value, dict):
        yield value
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for item in value:
        yield from _objects(item)


def with_text_keys(value: Any) -> Any:
    """The same with keys as JSON writes them."""
    if isinstance(value, dict):
        return {_text_key(key): with_text_keys(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = map(with_text_keys, value)
        return tuple(items) if isinstance(value, tuple) else list(items)
    return value


def _text_key(key: Any) -> Any:
    """The key as JSON writes it, if it can."""
    if isinstance(key, str):
        return key
    with suppress(TypeError, ValueError):
        return next(iter(json.loads(json.dumps({key: None}, allow_nan=False))))
    return key


class _Threads:
    """As many as there is work for; some stay for the next. The process does not wait for them when it ends."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Work]] = []

    def run(self, work: Work) -> None:
        """Do the work in a thread, at once."""
        try:
            line = self._idle.pop()
        except IndexError:
            line = SimpleQueue()
            threading.Thread(target=self._work, args=(line,), name="module", daemon=True).start()
        line.put(work)

    def _work(self, line: SimpleQueue[Work]) -> None:
        while True:
            line.get()()
            if len(self._idle) >= _KEPT:
                return
            self._idle.append(line)


_THREADS = _Threads()
_ROOMS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = weakref.WeakKeyDictionary()


def _counted_in(context: Any) -> Callable[[], Work] | None:
    data = getattr(context, "data", None)
    return data.get(OCCUPIES) if isinstance(data, dict) else None


async def _room(loop: asyncio.AbstractEventLoop) -> Work:
    """A place among the threads of this loop, and how it is given back."""
    room = _ROOMS.setdefault(loop, asyncio.Semaphore(AT_A_TIME))
    await room.acquire()

    def give_back() -> None:
        with suppress(RuntimeError):  # the loop is closed, and its places with it
            loop.call_soon_threadsafe(room.release)

    return give_back


async def _in_thread(work: Callable[[], Any], begin: Callable[[], Work] | None) -> Any:
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Any] = loop.create_future()
    end = await _room(loop) if begin is None else begin()

    def run() -> None:
        failure: Exception | None = None
        value = None
        try:
            value = work()
        except BaseException as error:
            failure = ordinary(error)
        end()
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, result, value, failure)

    _THREADS.run(run)
    return await result


def _settle(result: asyncio.Future[Any], value: Any, failure: Exception | None) -> None:
    if result.done():
        return
    if failure is None:
        result.set_result(value)
    else:
        result.set_exception(failure)

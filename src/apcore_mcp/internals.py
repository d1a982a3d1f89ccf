"""What we change inside apcore and pydantic; tests/unit/test_dependency_insides.py says what moved."""

import contextlib
import ctypes
import functools
import inspect
import marshal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apcore import Registry
from apcore.errors import ModuleLoadError
from apcore.registry import registry as apcore_registry
from pydantic import BaseModel
from watchdog.events import FileSystemEventHandler

HANDLER = "_ModuleChangeHandler"
RESOLVE = "resolve_entry_point"
_CONTAINED: weakref.WeakSet[Any] = weakref.WeakSet()


def watch(registry: Registry) -> None:
    """Follow the files of the extensions directory, with apcore's event handler repaired.

    Newer versions of apcore lost the handler's base class, and notice a file only when it appears, still empty.
    """
    handler = getattr(apcore_registry, HANDLER, FileSystemEventHandler)
    if not issubclass(handler, FileSystemEventHandler):
        setattr(apcore_registry, HANDLER, _repaired(handler))
    registry.watch()


def _repaired(handler: Any) -> type[FileSystemEventHandler]:
    class ModuleChangeHandler(handler, FileSystemEventHandler):  # type: ignore[misc]
        """Also notices when a file is closed after writing, and notices it every time."""

        _DEBOUNCE_WINDOW_SEC = 0.0
        on_closed = handler.on_modified

    return ModuleChangeHandler


@dataclass(frozen=True)
class ImportBudget:
    """Seconds for the import of one file; it travels with a registry as the hook that approves every file."""

    seconds: float

    def __call__(self, path: Path) -> None:
        """Approve the file."""


def bound_imports() -> None:
    """Make apcore keep to the `ImportBudget` of a registry that has one; other registries are not affected."""
    resolve = getattr(apcore_registry, RESOLVE)
    if resolve in _CONTAINED:
        return

    @functools.wraps(resolve)
    def bounded(file_path: Path, *args: Any, **options: Any) -> Any:
        budget = options.get("pre_approval_hook")
        if not isinstance(budget, ImportBudget):
            return resolve(file_path, *args, **options)
        found = _in_time(budget.seconds, file_path, functools.partial(resolve, file_path, *args, **options))
        for name in ("__init__", "on_load"):  # apcore calls both at once, and expects no exit either
            if (work := getattr(found, name, None)) not in (None, object.__init__):
                setattr(found, name, _contained(work))
        return found

    _CONTAINED.add(bounded)
    setattr(apcore_registry, RESOLVE, bounded)


def _in_time(seconds: float, file: Path, work: Callable[[], Any]) -> Any:
    """The result of the work, which runs in a thread: only a thread can be left behind if it never ends."""
    results: list[Any] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, name=f"import of {file.name}", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        if _is_busy(thread):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
        raise ModuleLoadError(str(file), f"its import did not end within {seconds:g} s (the import budget)")
    if failures and isinstance(failures[0], Exception):
        raise failures[0]
    if failures:
        raise ModuleLoadError(str(file), f"its import ended with {failures[0]!r}") from failures[0]
    return results[0]


def _is_busy(thread: threading.Thread) -> bool:
    """Tell a loop, which an exception ends, from a wait.

    A wait costs nothing. An exception that it never takes stays pending, and a traced Python 3.11 then spins for ever.
    """
    if sys.platform != "linux" or thread.ident is None:  # elsewhere there is no clock of another thread
        return False
    clock = time.pthread_getcpuclockid(thread.ident)
    before = time.clock_gettime(clock)
    thread.join(0.2)
    return thread.is_alive() and time.clock_gettime(clock) > before


def contain_exits(module: Any) -> None:
    """Make an exit in an async module fail its call alone; apcore runs it in a task, where it would end the process."""
    execute = getattr(module, "execute", None)
    if inspect.iscoroutinefunction(execute) and execute not in _CONTAINED:

        @functools.wraps(execute)
        async def contained(*args: Any, **options: Any) -> Any:
            try:
                return await execute(*args, **options)
            except SystemExit as error:
                raise RuntimeError(f"the module ended with {error!r}") from error

        _CONTAINED.add(contained)
        with contextlib.suppress(AttributeError):  # an object without room for it stays as it is
            module.execute = contained


def _contained(work: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(work)
    def contained(*args: Any, **options: Any) -> Any:
        try:
            return work(*args, **options)
        except SystemExit as error:
            raise RuntimeError(f"the module ended with {error!r}") from error

    return contained


def remember_schemas(module: Any) -> None:
    """Make the module's pydantic models compute their JSON Schema once; apcore asks three times per call."""
    for model in (getattr(module, "input_schema", None), getattr(module, "output_schema", None)):
        if isinstance(model, type) and issubclass(model, BaseModel) and "model_json_schema" not in vars(model):
            _remember(model)


def _remember(model: Any) -> None:
    compute = model.model_json_schema.__func__
    with contextlib.suppress(Exception):  # no schema, or one that is not plain data: leave the model as it is
        model.model_rebuild()
        plain = marshal.dumps(compute(model))

        def model_json_schema(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if cls is not model or args or kwargs:
                return compute(cls, *args, **kwargs)
            return marshal.loads(plain)  # noqa: S302 - our own bytes

        model.model_json_schema = classmethod(model_json_schema)

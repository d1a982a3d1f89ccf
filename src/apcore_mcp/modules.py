"""The modules to expose: which registry they come from, and which filters are legal."""

from typing import Any

from apcore import Executor, Registry
from apcore.registry import registry as apcore_registry
from watchdog.events import FileSystemEventHandler

Json = dict[str, Any]
Source = Registry | Executor
Tags = list[str] | None


def registry_of(source: Source) -> Registry:
    """The registry given, or the one behind the executor given."""
    if not isinstance(source, Registry | Executor):
        raise TypeError(f"Expected Registry or Executor instance, got {type(source).__name__}")
    return source.registry if isinstance(source, Executor) else source


def check_filters(tags: Tags, prefix: str | None) -> None:
    if tags is not None and not all(tags):
        raise ValueError("Tag values must not be empty")
    if prefix == "":
        raise ValueError("prefix must not be empty")


def watch(registry: Registry) -> None:
    """Follow the files of the extensions directory, with apcore's event handler repaired.

    Newer apcore lost the handler's base class, and hears only of the moment at which a file is there but still empty.
    """
    handler = getattr(apcore_registry, "_ModuleChangeHandler", FileSystemEventHandler)
    if not issubclass(handler, FileSystemEventHandler):
        every_event = {"_DEBOUNCE_WINDOW_SEC": 0.0, "on_closed": handler.on_modified}
        repaired: Any = type(handler.__name__, (handler, FileSystemEventHandler), every_event)
        apcore_registry._ModuleChangeHandler = repaired  # type: ignore[misc]
    registry.watch()

"""The modules to expose: which registry they come from."""

from typing import Any

from apcore import Executor, Registry

Json = dict[str, Any]
Source = Registry | Executor


def registry_of(source: Source) -> Registry:
    """The registry given, or the one behind the executor given."""
    if not isinstance(source, Registry | Executor):
        raise TypeError(f"Expected Registry or Executor instance, got {type(source).__name__}")
    return source.registry if isinstance(source, Executor) else source

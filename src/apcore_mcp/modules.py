"""The modules to expose: which registry they come from, and which filters are legal."""

from collections.abc import Sequence
from typing import Any

from apcore import Executor, Registry


def registry_of(registry_or_executor: Any) -> Registry:
    """The registry given, or the one behind the executor given."""
    if isinstance(registry_or_executor, Registry):
        return registry_or_executor
    if isinstance(registry_or_executor, Executor):
        return registry_or_executor.registry
    raise TypeError(f"Expected Registry or Executor instance, got {type(registry_or_executor).__name__}")


def check_filters(tags: Sequence[str] | None, prefix: str | None) -> None:
    if tags is not None and not all(tags):
        raise ValueError("Tag values must not be empty")
    if prefix == "":
        raise ValueError("prefix must not be empty")

"""The modules to expose: which registry they come from, and which filters are legal."""

from typing import Any

from apcore import Executor, Registry

Json = dict[str, Any]
Source = Registry | Executor
Tags = list[str] | None


def registry_of(source: Source) -> Registry:
    """The registry given, or the one behind the executor given."""
    if not isinstance(source, Registry | Executor):
        raise TypeError(f"Expected Registry or Executor instance, got {type(source).__name__}")
    return source.registry if isinstance(source, Executor) else source


def check_filters(tags: Tags, prefix: str | None) -> None:
    """TypeError or ValueError for a filter that can only be a mistake."""
    if tags is not None and (isinstance(tags, str) or not all(isinstance(tag, str) for tag in tags)):
        raise TypeError(f"tags must be a list of strings, got {tags!r:.100}")
    if not isinstance(prefix, str | None):
        raise TypeError(f"prefix must be a string, got {prefix!r:.100}")
    if tags is not None and not all(tags):
        raise ValueError("Tag values must not be empty")
    if prefix == "":
        raise ValueError("prefix must not be empty")

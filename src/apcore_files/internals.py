"""What we change inside apcore; tests/unit/test_dependency_insides.py says what moved."""

import functools
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from apcore.registry import entry_point
from apcore.registry import registry as apcore_registry

from apcore_files.importing import contained, in_time

RESOLVE = "resolve_entry_point"
IMPORT = "_import_module_from_file"


@runtime_checkable
class FileLoader(Protocol):
    """What travels with a registry as the hook that approves its files, and decides what they bring."""

    seconds: float

    def __call__(self, path: Path) -> None:
        """Approve a file."""

    def loaded(self, path: Path, module: ModuleType) -> None:
        """Note a file that was imported."""

    def without_class(self, path: Path, problem: Exception) -> type:
        """The class for a file in which apcore found none; raises the problem where there is nothing to find."""


def follow_loaders() -> None:
    """Make apcore ask the `FileLoader` of a registry that has one; other registries are not affected."""
    resolve = getattr(apcore_registry, RESOLVE)
    if hasattr(resolve, "asks_loaders"):
        return
    load = getattr(entry_point, IMPORT)

    @functools.wraps(load)
    def imported(file_path: Path, pre_approval_hook: Any = None) -> Any:
        module = load(file_path, pre_approval_hook=pre_approval_hook)
        if isinstance(pre_approval_hook, FileLoader):
            pre_approval_hook.loaded(file_path, module)
        return module

    @functools.wraps(resolve)
    def resolved(file_path: Path, *args: Any, **options: Any) -> Any:
        loader = options.get("pre_approval_hook")
        if not isinstance(loader, FileLoader):
            return resolve(file_path, *args, **options)

        def find() -> type:
            try:
                found: type = resolve(file_path, *args, **options)
            except Exception as problem:
                found = loader.without_class(file_path, problem)
            return found

        found = in_time(loader.seconds, file_path, find)
        for name in ("__init__", "on_load"):  # apcore calls both at once, and expects no exit either
            if (work := getattr(found, name, None)) not in (None, object.__init__):
                setattr(found, name, contained(work))
        return found

    vars(resolved)["asks_loaders"] = True
    setattr(entry_point, IMPORT, imported)
    setattr(apcore_registry, RESOLVE, resolved)

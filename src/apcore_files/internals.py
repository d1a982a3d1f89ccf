"""What we change inside apcore; tests/unit/test_dependency_insides.py says what moved."""

import functools
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from apcore.registry import entry_point
from apcore.registry import registry as apcore_registry

from apcore_files.importing import contained, in_time

STAGES = (
    "_scan_params",
    "_scan_roots",
    "_apply_id_map_overrides",
    "_load_all_metadata",
    "_resolve_all_entry_points",
    "_validate_all",
    "_resolve_load_order",
    "_filter_id_conflicts",
    "_call_on_suspend",
    "_register_in_order",
)
"""What apcore's discovery does one after the other; whoever follows a folder does it again for some files."""
Mark = tuple[int, ...]
RESOLVE = "resolve_entry_point"
IMPORT = "_import_module_from_file"


@runtime_checkable
class FileLoader(Protocol):
    """What travels with a registry as the hook that approves its files, and decides what they bring."""

    seconds: float
    held: dict[Path, tuple[str, Mark]]

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


def scanned(registry: Any) -> dict[Path, Any]:
    """The files that discovery would load now; none while a folder is missing."""
    if not all(Path(each["root"]).is_dir() for each in registry._extension_roots):
        return {}
    found: list[Any] = registry._scan_roots(*registry._scan_params())
    registry._apply_id_map_overrides(found)
    return {file.file_path: file for file in found}


def held_by(registry: Any) -> dict[Path, tuple[str, Mark]]:
    """The files that the registry was filled from: the id and the mark of each, as they were before they were read."""
    loader = registry._pre_approval_hook
    return loader.held if isinstance(loader, FileLoader) else marked(registry)


def marked(registry: Any) -> dict[Path, tuple[str, Mark]]:
    """The files that are there now: the id and the mark of each."""
    return {path: (file.canonical_id, mark_of(file)) for path, file in scanned(registry).items()}


def mark_of(file: Any) -> Mark:
    """By which a file and what stands beside it are known to be the same still."""
    return (*_stat(file.file_path), *(_stat(file.meta_path) if file.meta_path else ()))


def _stat(path: Path) -> Mark:
    try:
        about = path.stat()
    except OSError:  # gone since
        return ()
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns

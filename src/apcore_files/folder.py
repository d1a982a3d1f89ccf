"""A folder of apcore modules and typed functions: a file that cannot be used is left out, the others are served."""

import contextlib
import inspect
import logging
from pathlib import Path
from types import ModuleType
from typing import Any

from apcore import FunctionModule, ModuleAnnotations, Registry

from apcore_files.budget import IMPORT_BUDGET
from apcore_files.functions import NotATool, Nothing, decorated, identifier, module_of, plain
from apcore_files.internals import Mark, follow_loaders, marked

log = logging.getLogger(__name__)
HIDDEN = ModuleAnnotations(discoverable=False)


def discovered(folder: Path, import_budget: float = IMPORT_BUDGET) -> Registry:
    """A registry of what the files of a folder bring; each file has so many seconds to be imported in."""
    follow_loaders()
    loader = FolderLoader(folder, import_budget)
    loader.registry = Registry(extensions_dir=str(folder), pre_approval_hook=loader)
    loader.held = marked(loader.registry)
    loader.registry.discover()
    return loader.registry


class FolderLoader:
    """Travels with the registry of a folder; makes a module of every typed function in files without a class."""

    registry: Registry

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder = folder
        self.seconds = seconds
        self.held: dict[Path, tuple[str, Mark]] = {}
        self._loaded: dict[Path, ModuleType] = {}

    def __call__(self, path: Path) -> None:
        """Approve the file."""

    def loaded(self, path: Path, module: ModuleType) -> None:
        """Note what the file holds, until the class in it is found or is not."""
        self._loaded[path] = module

    def without_class(self, path: Path, problem: Exception) -> type:
        """The class that stands for a file of functions."""
        loaded = self._loaded.pop(path, None)
        if loaded is None or any(hasattr(kind, "execute") for _, kind in inspect.getmembers(loaded, inspect.isclass)):
            raise problem  # it could not be imported, or it has classes that are not right: those are apcore's words
        file_id = ".".join(path.resolve().relative_to(self.folder.resolve()).with_suffix("").parts)
        modules = _modules(loaded, file_id)
        if not modules:
            raise NotATool(
                f"{path.name} has no tools: write a function with types, such as def add(a: int, b: int) -> int:"
            ) from problem
        return _stand_in(self.registry, file_id, modules)


def _modules(loaded: ModuleType, file_id: str) -> dict[str, FunctionModule]:
    """The modules of a file by their ids: those that are decorated, or else those of its plain functions."""
    stem = file_id.rpartition(".")[2]
    made = decorated(loaded)
    if made:
        own = f"{loaded.__name__}."  # how apcore names what was given no id
        named = {name: module.module_id.removeprefix(own) for name, module in made.items()}
        return {
            _id(file_id, stem, named[name]) if module.module_id.startswith(own) else module.module_id: module
            for name, module in made.items()
        }
    modules = {}
    for name, function in plain(loaded).items():
        module_id = _id(file_id, stem, identifier(name))
        try:
            modules[module_id] = module_of(function, module_id)
        except NotATool as problem:
            log.warning("%s: %s", Path(str(loaded.__file__)).name, problem)
    return modules


def _id(file_id: str, stem: str, name: str) -> str:
    return file_id if name == stem else f"{file_id}.{name}"


def _stand_in(registry: Registry, file_id: str, modules: dict[str, FunctionModule]) -> type:
    """A class that apcore registers for the file: it is the function named as the file is, and brings the others."""
    main = modules.pop(file_id, None)

    class FileOfFunctions:
        description = main.description if main else "The functions of a file."
        documentation = main.documentation if main else None
        input_schema = main.input_schema if main else Nothing
        output_schema = main.output_schema if main else Nothing
        annotations = main.annotations if main else HIDDEN
        tags = main.tags if main else None
        examples = main.examples if main else None

        execute = staticmethod(main.execute if main else _nothing)

        def on_load(self) -> None:
            """Register the other functions, all or none."""
            try:
                for module_id, module in modules.items():
                    registry.register(module_id, module)
            except Exception:
                self.on_unload()
                raise

        def on_unload(self) -> None:
            """Take them out again, unless another file's is there under the name."""
            for module_id, module in modules.items():
                with contextlib.suppress(Exception):
                    if registry.get(module_id) is module:
                        registry.unregister(module_id)

    return FileOfFunctions


def _nothing(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    raise NotATool("this stands for a file of functions, and is none itself")

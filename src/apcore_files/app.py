"""One Python file as a registry: the registry in it, its decorated functions, or its plain typed functions."""

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from apcore import Executor, Registry

from apcore_files.app_name import parts
from apcore_files.budget import IMPORT_BUDGET
from apcore_files.functions import NotATool, decorated, identifier, module_of, plain
from apcore_files.importing import ImportFailed, in_time


def registry_in(app: str, import_budget: float = IMPORT_BUDGET) -> Registry | Executor:
    """What the file offers; ValueError says what to write where it offers nothing."""
    path, name = parts(app)
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    loaded = in_time(import_budget, path, lambda: _imported(path))
    if name is not None:
        return _named(loaded, path, name)
    offered = _registries(loaded)
    if len(offered) > 1:
        names = " or ".join(f"{path.name}:{each}" for each in offered)
        raise ValueError(f"{path.name} has {len(offered)} registries; say which one: {names}")
    for registry in offered.values():
        if isinstance(registry, Executor) or registry.count:
            return registry
    return _of_functions(loaded, path)


def _imported(path: Path) -> ModuleType:
    """The file, imported under its own name; what stands beside it can be imported too, as when it is run."""
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else f"app_{abs(hash(path))}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise ImportFailed(f"{path} cannot be imported")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    loaded = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except Exception as error:
        del sys.modules[name]
        raise ImportFailed(f"{path} cannot be imported: {_what_and_where(error, path)}") from error
    return loaded


def _what_and_where(error: Exception, path: Path) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.msg}, in line {error.lineno}"
    here = str(path.resolve())
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == here]
    place = f", in line {lines[-1]}" if lines else ""
    return f"{type(error).__name__}: {error}{place}"


def _registries(loaded: ModuleType) -> dict[str, Registry | Executor]:
    """The registries in a file; one that an executor in it runs is served through that executor."""
    found: dict[str, Registry | Executor] = {}
    for name, value in vars(loaded).items():
        if isinstance(value, Registry | Executor) and value not in found.values():
            found[name] = value
    run = [executor.registry for executor in found.values() if isinstance(executor, Executor)]
    return {name: value for name, value in found.items() if value not in run}


def _named(loaded: ModuleType, path: Path, name: str) -> Registry | Executor:
    value = getattr(loaded, name, None)
    if isinstance(value, Registry | Executor):
        return value
    offered = ", ".join(_registries(loaded)) or "none"
    raise ValueError(f"{path.name} has no registry called {name!r}; registries in it: {offered}")


def _of_functions(loaded: ModuleType, path: Path) -> Registry:
    registry = Registry()
    problems = []
    for module in decorated(loaded).values():
        registry.register(module.module_id, module)
    undecorated = {} if registry.count else plain(loaded)
    for name, function in undecorated.items():
        module_id = identifier(name)
        try:
            registry.register(module_id, module_of(function, module_id))
        except NotATool as problem:
            problems.append(str(problem))
    if problems:
        raise ValueError("\n".join(f"{path.name}: {problem}" for problem in problems))
    if not registry.count:
        raise ValueError(
            f"{path.name} has no tools: write a function with types, such as def add(a: int, b: int) -> int:"
        )
    return registry

"""A folder of apcore modules: a file whose import exits or never ends is left out, and the others are served."""

from pathlib import Path

from apcore import Registry

from apcore_mcp.internals import ImportBudget, bound_imports
from apcore_mcp.options import IMPORT_BUDGET


def discovered(folder: Path, import_budget: float = IMPORT_BUDGET) -> Registry:
    """A registry of the modules in the files of a folder; each file has so many seconds to be imported in."""
    bound_imports()
    registry = Registry(extensions_dir=str(folder), pre_approval_hook=ImportBudget(import_budget))
    registry.discover()
    return registry

"""The tools that agents work a tree with."""

from toolgrove.tools.catalog import DECLARATIONS
from toolgrove.tools.source import WorkspaceSource

__all__ = ["DECLARATIONS", "WorkspaceSource"]

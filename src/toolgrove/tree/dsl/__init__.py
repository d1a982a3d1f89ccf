"""The selection DSL: read, compile, walk."""

from toolgrove.tree.dsl.parser import parse
from toolgrove.tree.dsl.selection import Selection

__all__ = ["Selection", "parse"]

"""The selection language: a query is cut into tokens, parsed, compiled and walked.

- ``advice``: why a query found nothing
- ``condition``: conditions, compiled to closures over nodes
- ``parser``: the grammar, and errors that point at the place
- ``selection``: a query run over a tree, each node once
- ``syntax``: a query once it is read
- ``tokens``: a text cut into tokens
"""

from toolgrove.tree.dsl.parser import parse
from toolgrove.tree.dsl.selection import Selection

__all__ = ["Selection", "parse"]

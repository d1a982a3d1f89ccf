"""The tools that agents work a tree with; each is a function in the module of its family.

- ``answer_size``: keeps an answer within its budget, whatever the tool
- ``arranging``: moving, ordering and copying nodes
- ``batch``: many changes as one
- ``brief``: schemas in few words, for models that read all of them
- ``catalog``: all of them by name, in the order that agents see
- ``checking``: validating the tree, linting a payload, listing types and rulesets
- ``conditions``: conditions as arguments, and why nothing met them
- ``context``: what a tool works with while one call runs
- ``declaration``: what a tool says about itself: arguments, result, effect, example
- ``diff_answer``: a diff as an answer, a page at a time where it is long
- ``effort``: which calls may take long, by a rough count
- ``following``: what other processes wrote, taken over
- ``history``: undo, redo and changes since a version
- ``marking``: tags and bookmarks
- ``order``: nodes in the order of a property
- ``patch``: properties to set and to remove, by the paths that read them
- ``pending_writes``: writes that show already while the journal still makes them durable
- ``querying``: queries of the selection language
- ``reading``: one node, its children, its path, its subtree
- ``sample``: a small tree for the docs, the examples and the REPL
- ``schema``: the pieces of the tools' JSON Schemas
- ``searching``: by property, by predicate groups, by query, by tag
- ``snapshots``: taking, listing, restoring and comparing them
- ``source``: the tools as a source of the pool; runs a call on the workspace
- ``subtree_watches``: who is told when a subtree changes
- ``transferring``: views and subtrees as documents, out and back in
- ``tree_answer``: a view or a subtree as an answer, nested, flat or as an outline
- ``turns``: short work at once, long work in a thread, one change at a time
- ``viewing``: the session's view, open nodes and filters
- ``writing``: adding, updating and removing nodes
"""

from toolgrove.tools.catalog import DECLARATIONS
from toolgrove.tools.source import WorkspaceSource

__all__ = ["DECLARATIONS", "WorkspaceSource"]

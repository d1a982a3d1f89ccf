"""The tree: nodes, their history, and all that agents keep beside them; knows no tool, no store and no transport.

- ``bookmarks``: labels that an agent puts on nodes for itself
- ``boundary``: whether a change stays inside the subtree that an agent may write
- ``delegated``: what a delegated run keeps for itself while it lasts
- ``diff``: what differs between two states, or between two subtrees
- ``document``: trees as JSON documents, written and read
- ``dsl``: the selection language
- ``effects``: what one call does to a workspace, as plain data that a store can keep
- ``footprint``: what a call rests on, so that only changes to that make its version stale
- ``history``: the commits, and the states that their before-images lead back to
- ``impact``: what a transaction removes or overwrites, as a digest and as a sentence in names
- ``merge``: a document merged into a tree
- ``node``: a node, and its image as the journal keeps it
- ``ordered_results``: results that pages are cut from, kept while the tree is the same
- ``page_token``: where a page ended, signed for one agent and one question
- ``payload_type``: what payloads of a type may hold
- ``position``: places in pre-order, so that a page goes on in a tree that has changed
- ``predicate``: predicates over payloads, compiled to closures
- ``property_path``: dotted paths, to find values and to filter what a reader sees
- ``property_write``: the same paths, to set and to remove values
- ``rank``: what orders siblings
- ``render``: nodes as JSON, as nested trees within a budget, as an outline
- ``rules``: rulesets and their checks
- ``saved``: a workspace as a store gives it back
- ``tree``: the dict of nodes, changed only inside a transaction
- ``undo``: taking back what an agent did last
- ``view``: what one session sees, open nodes and properties
- ``workspace``: all of it together, with versions, snapshots and limits
"""

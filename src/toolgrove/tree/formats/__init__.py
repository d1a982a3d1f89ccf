"""Subtrees as texts that other programs read: lists, tables and diagrams, out and mostly back in.

- ``diagram``: a Mermaid flowchart, out only
- ``fitting``: which nodes of a subtree a text has room for, and how it says that some are missing
- ``forms``: which there are
- ``lines``: a node as a line of a text says it, and how a line is refused
- ``markdown``: nested lists
- ``opml``: outlines of outliners
- ``reading``: texts as nodes to merge
- ``table``: CSV, with properties and tags
- ``writing``: a subtree in any of them
"""

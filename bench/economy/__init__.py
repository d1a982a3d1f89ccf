"""What work costs a model: calls, and tokens sent and received, of a scripted agent that knows only what it is told.

- ``figure``: one figure beside its limit
- ``scripted_agent``: an agent over MCP that counts, and follows errors and hints
- ``tree_work``: reorganising, tagging, reverting and overviews of a tree
"""

"""What work costs a model: calls, and tokens sent and received, of a scripted agent that knows only what it is told.

- ``figure``: one figure beside its limit
- ``questions``: a hundred questions in plain words, and the tools that answer them
- ``scripted_agent``: an agent over MCP that counts, and follows errors and hints
- ``search``: what it costs to see and to find tools, beside FastMCP's search
- ``tree_work``: reorganising, tagging, reverting and overviews of a tree
"""

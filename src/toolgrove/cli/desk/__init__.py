"""What commands ask of a project: done here, or by the gateway that serves it, in the same words.

An operation is a function of a project; `table` names them all. A command asks a `Desk` for one by its name and shows
the JSON that comes back, so it cannot tell which of the two answered.

- ``access``: operations; which tools an agent has, and why
- ``calls``: operations; a tool called, a task given to a model
- ``decisions``: operations; approvals and pins, seen and decided
- ``desk``: the desk itself: here, or there
- ``health``: operations; what the doctor asks of a project that runs
- ``keys``: operations; tokens, and a way into the console
- ``opening``: finds the gateway, or opens the project
- ``records``: operations; the audit log
- ``rest``: a project that is not opened: its state and its log, read beside whoever has them open
- ``table``: every operation by its name
- ``tree``: operations; the tree
"""

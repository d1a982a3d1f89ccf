"""The pool: tools of many sources, resolved into one fixed toolset per agent."""

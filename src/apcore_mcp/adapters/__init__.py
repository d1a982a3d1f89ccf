"""Pure translations from apcore's vocabulary to MCP's.

- ``annotations``: hints about a module's behaviour
- ``errors``: what a client is told when a call fails
- ``id_normalizer``: module ids as function names
- ``schema``: JSON Schemas without references
- ``sensitivity``: which fields a message must not repeat
"""

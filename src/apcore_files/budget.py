"""How long the import of one file may take."""

IMPORT_BUDGET = 10.0
"""Seconds, unless told otherwise."""

"""The forms that there are, by name: who only names them need not import what writes and reads them."""

from __future__ import annotations

READS = ("markdown", "opml", "csv")
WRITES = ("outline", "markdown", "opml", "csv", "mermaid")

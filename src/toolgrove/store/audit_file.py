"""The audit log in a file of JSON Lines, read while another process may write it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import anyio.to_thread

from toolgrove.store.audit import Breach, verify
from toolgrove.store.audit_log import AuditPage, AuditQuery

_ASKED = {"number": int, "timestamp": str, "agent": str, "operation": str, "outcome": str}


class AuditFile:
    """The records in a file; a line that is not one is passed over, and found by `verify`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def records(self, query: AuditQuery) -> AuditPage:
        """A page of the records."""
        return await anyio.to_thread.run_sync(self._page, query)

    async def verify(self) -> Breach | None:
        """Where the file was altered, cut in the middle or reordered."""
        return await anyio.to_thread.run_sync(lambda: verify(self._lines()))

    def _page(self, query: AuditQuery) -> AuditPage:
        found, many = filter(query.wants, self._records()), query.limit + 1
        page = list(reversed(deque(found, many))) if query.newest else list(islice(found, many))
        return AuditPage.cut(page, query.limit)

    def _records(self) -> Iterator[dict[str, Any]]:
        for line in self._lines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and all(isinstance(record.get(name), kind) for name, kind in _ASKED.items()):
                yield record

    def _lines(self) -> Iterator[str]:
        with self._path.open(encoding="utf-8", errors="replace") as lines:
            yield from lines

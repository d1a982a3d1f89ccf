"""How much room a store takes, and whether that is more than somebody wanted to hear of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Extent:
    """The bytes of the store and of its archive, its audit records, and the bytes that are free on its disk; None there
    where the disk is a database's own affair."""

    store_bytes: int
    archive_bytes: int
    audit_records: int
    disk_free: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Marks:
    """When to warn: so many audit records, or so few bytes that are free."""

    audit_records: int
    disk_free: int

    def audit_passed(self, extent: Extent) -> bool:
        """Whether there are more records than that."""
        return extent.audit_records > self.audit_records

    def disk_passed(self, extent: Extent) -> bool:
        """Whether less is free than that."""
        return extent.disk_free is not None and extent.disk_free < self.disk_free

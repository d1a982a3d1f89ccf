"""The journal of a process that may forget: everything in memory, audit lines also to a file if wished."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice

from toolgrove.store.audit import AuditRing, AuditSink, Breach, JsonLines, Sealed, close_logs, end_of_log, seal, verify
from toolgrove.store.audit_log import AuditPage, AuditQuery
from toolgrove.store.journal import Behind, Entry, IdempotencyRecord, KeyLimits
from toolgrove.types import Clock


class MemoryJournal:
    """Keeps audit records in a ring and idempotency records until they expire."""

    def __init__(self, clock: Clock, *, sinks: Sequence[AuditSink] = (), limits: KeyLimits | None = None) -> None:
        self.audit = AuditRing()
        self.fault: OSError | None = None
        """Why the last entry was refused; None while all is well."""
        self._clock = clock
        self._sinks = sinks
        self._limits = limits or KeyLimits()
        self._keys: dict[str, OrderedDict[str, tuple[float, IdempotencyRecord]]] = {}
        self._revision = 0
        self._number, self._previous = end_of_log(sinks)

    async def open(self) -> None:
        """Begin with nothing."""

    async def close(self) -> None:
        """Let go of the files."""
        close_logs(self._sinks)

    async def append(self, entry: Entry) -> None:
        """Keep an entry; a sink that cannot write keeps all of it out."""
        effects = entry.effects
        if effects is not None and effects.base != self._revision:
            raise Behind(base=effects.base, revision=self._revision)
        sealed = seal(entry.audit, self._number + 1, self._previous)
        try:
            self._write(sealed)
        except OSError as fault:
            self.fault = fault
            raise
        self.fault = None
        self._number, self._previous = self._number + 1, sealed.hash
        self.audit.write(sealed)
        if entry.idempotency is not None:
            self._keep(entry.idempotency)
        if effects is not None:
            self._revision = effects.revision

    def _write(self, sealed: Sealed) -> None:
        """Hand a record to every sink; if one of them fails, the logs that have it already lose it again."""
        written: list[AuditSink] = []
        try:
            for sink in self._sinks:
                sink.write(sealed)
                written.append(sink)
        except Exception:
            for sink in written:
                if isinstance(sink, JsonLines):
                    sink.take_back()
            raise

    async def recall(self, agent: str, key: str) -> IdempotencyRecord | None:
        """The result under a key, unless it has expired."""
        keys = self._keys.get(agent)
        kept = keys.get(key) if keys else None
        if kept is None or self._clock.monotonic() - kept[0] > self._limits.lifetime:
            return None
        return kept[1]

    async def records(self, query: AuditQuery) -> AuditPage:
        """A page of those that are still in the ring."""
        kept = reversed(self.audit) if query.newest else iter(self.audit)
        found = islice(filter(query.wants, kept), query.limit + 1)
        return AuditPage.cut(list(found), query.limit)

    async def verify(self) -> Breach | None:
        """Whether the ring was left as it was written."""
        return verify(self.audit.lines())

    def _keep(self, record: IdempotencyRecord) -> None:
        keys = self._keys.setdefault(record.agent, OrderedDict())
        now = self._clock.monotonic()
        keys[record.key] = (now, record)
        keys.move_to_end(record.key)
        limits = self._limits
        while len(keys) > limits.per_agent or now - next(iter(keys.values()))[0] > limits.lifetime:
            keys.popitem(last=False)

"""The journal of a process that may forget: everything in memory, audit lines also to a file if wished."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio
import anyio.to_thread

from toolgrove.notation.times import to_milliseconds
from toolgrove.store.audit import (
    NO_BODIES,
    RING_BYTES,
    START,
    AuditFile,
    AuditPage,
    AuditQuery,
    AuditRing,
    AuditSink,
    Bodies,
    ChainCheck,
    JsonLines,
    Notary,
    Place,
    Proof,
    Sealed,
    Unfinished,
    capped,
    chained,
    close_logs,
    end_of_log,
    resume,
    signed,
)
from toolgrove.store.journal.forgotten_keys import ForgottenKeys
from toolgrove.store.journal.journal import RECORD_BYTES, Behind, IdempotencyRecord, JournalEntry, KeyLimits, Trouble
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.store")
UNSIGNED = 0.05
"""For how many seconds a record may wait for a signature that covers it: to sign each would cost a tenth of a call."""


class GroupSync:
    """Syncs files; requests that come in meanwhile share the next sync."""

    def __init__(self, files: Sequence[JsonLines]) -> None:
        self._files = files
        self._lock = anyio.Lock()
        self._asked = self._done = 0

    async def __call__(self) -> None:
        self._asked += 1
        mine = self._asked
        async with self._lock:
            if self._done < mine:
                covered = self._asked
                for file in self._files:
                    await anyio.to_thread.run_sync(file.sync)
                self._done = covered


class MemoryJournal:
    """Keeps audit records in a ring and idempotency records until they expire."""

    def __init__(
        self,
        clock: Clock,
        *,
        sinks: Sequence[AuditSink] = (),
        limits: KeyLimits | None = None,
        record_bytes: int = RECORD_BYTES,
        notary: Notary | None = None,
        change_key: bool = False,
    ) -> None:
        """`change_key` lets a log that another key sealed go on under this one."""
        self.audit = AuditRing(body_bytes=min(record_bytes, RING_BYTES))
        self.unfinished = Unfinished()
        self.fault: OSError | None = None
        """Why the last entry was refused; None while all is well."""
        self._clock = clock
        self._sinks = sinks
        self._limits = limits or KeyLimits()
        self._forgotten = ForgottenKeys(self._limits)
        self._keys: dict[str, OrderedDict[str, tuple[float, IdempotencyRecord]]] = {}
        self._newest: str | None = None
        self._notary = notary
        self._change_key = change_key
        self._signed_at = -math.inf
        self._signing: asyncio.TimerHandle | None = None
        self._loading: asyncio.Future[None] | None = None
        self._files = [sink for sink in sinks if isinstance(sink, JsonLines)]
        self._place: Place | None = None
        self._sync = GroupSync(self._files)

    @property
    def project(self) -> str:
        """None: what is in memory is nobody's for long."""
        return ""

    async def open(self) -> None:
        """Begin with an empty workspace, and go on with the log in a file, if there is one.

        Going on with one takes signatures at once; a new one is signed as soon as somebody is called.
        """
        if self._notary is not None:
            await anyio.to_thread.run_sync(self._make_ready, self._notary)
        self._begin()

    def _make_ready(self, notary: Notary) -> None:
        notary.open()
        if notary.noted() is not None or any(file.path.exists() and file.path.stat().st_size for file in self._files):
            notary.load()

    async def close(self) -> None:
        """Sign what is not signed yet, and let go of the files."""
        if self._signing is not None:
            self._signing.cancel()
        self._sign_end()
        close_logs(self._sinks)
        if self._notary is not None:
            self._notary.close()

    def fingerprint(self, text: str) -> str:
        """The stamp of a text; without a key its hash."""
        stamp = self._notary.stamp(text) if self._notary is not None else ""
        return stamp or hashlib.sha256(text.encode()).hexdigest()

    def _begin(self) -> Place:
        noted = None
        if self._notary is not None:
            self._notary.open()
            noted = self._notary.noted()
        tail = end_of_log(self._sinks)
        if self._notary is not None and tail.is_ours is False and not self._change_key:
            raise self._notary.another("project", self._files[-1].path)
        if tail.place == START and noted is not None:  # the file was moved away, and the next says where it goes on
            tail = replace(tail, place=noted, is_ours=True)
        missed = [noted] if noted is not None and noted.number >= tail.place.number and noted != tail.place else []
        now = to_milliseconds(self._clock.wall())
        going_on = resume(tail, missed, self._notary, now, is_sealed=tail.is_sealed(noted))
        self.unfinished, self._place = tail.unfinished, going_on.after
        for record in going_on.records:
            self._signed_at = -math.inf
            self._place = self._keep_record(record, self._place)
        return self._place

    @property
    def trouble(self) -> Trouble | None:
        """Why an entry could not be kept now; None while all is well."""
        return None if self.fault is None else "store_unwritable"

    async def writable(self) -> None:
        """Return at once: memory is nobody else's."""

    async def append(self, entry: JournalEntry) -> None:
        """Keep an entry; a sink that cannot write keeps all of it out."""
        effects = entry.effects
        if effects is not None and (effects.base != 0 if self._newest is None else effects.parent != self._newest):
            raise Behind(parent=effects.parent, newest=self._newest or "nothing")
        try:
            record = capped(entry.audit)
            self._place = self._keep_record(record.to_json(), self._place or self._begin(), record.bodies)
        except OSError as fault:
            self.fault = fault
            raise
        self.fault = None
        if self._signing is None and self._notary is not None and self._files:
            self._sign_soon(self._notary)
        if entry.idempotency is not None:
            self._keep(entry.idempotency)
        if effects is not None:
            self._newest = effects.id
        if entry.durable and self._files:
            await self._sync()

    def _keep_record(self, record: Mapping[str, Any], after: Place, bodies: Bodies = NO_BODIES) -> Place:
        """Write a record, signed if it is time for that; where the chain stands then."""
        sealed, now = chained(record, after, bodies), self._clock.monotonic()
        is_time = self._notary is not None and now - self._signed_at >= UNSIGNED and self._notary.is_loaded
        if self._notary is not None and is_time:
            sealed = signed(sealed, self._notary.sign)
        self._write(sealed)
        if is_time:
            self._signed_at = now
        place = Place(after.number + 1, sealed.hash)
        if self._notary is not None:
            self._notary.note(place)
        self.audit.write(sealed)
        self.unfinished.hear(record)
        return place

    def _sign_soon(self, notary: Notary) -> None:
        """Sign the end in a moment; what it takes to sign is loaded beside the event loop, the first time."""
        loop = asyncio.get_running_loop()
        if not notary.is_loaded and self._loading is None:
            self._loading = loop.run_in_executor(None, notary.load)
        self._signing = loop.call_later(UNSIGNED, self._sign_if_ready, notary)

    def _sign_if_ready(self, notary: Notary) -> None:
        if notary.is_loaded:
            self._sign_end()
        else:
            self._sign_soon(notary)

    def _sign_end(self) -> None:
        """Sign the records that came since the last signature, so that they need not wait for the next one."""
        self._signing = None
        for file in self._files:
            try:
                file.sign()
            except OSError as error:
                log.debug("the end of the audit log cannot be signed: %s", error)

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
        kept = self.audit.lines()
        found = (line for line in (reversed(kept) if query.newest else kept) if query.wants(json.loads(line)))
        return AuditPage.of(found, query.limit)

    async def verify(self, anchors: Iterable[Place] = ()) -> Proof:
        """Whether the file was left as it was written; the ring, where there is no file."""
        if self._files:
            self._sign_end()
            return await AuditFile(self._files[-1].path, self._notary).verify(anchors)
        check = ChainCheck(self._notary, known=anchors)
        for line in self.audit.lines():
            check.follow(line)
        return check.finish()

    def _keep(self, record: IdempotencyRecord) -> None:
        keys = self._keys.setdefault(record.agent, OrderedDict())
        now = self._clock.monotonic()
        keys[record.key] = (now, record)
        keys.move_to_end(record.key)
        limits = self._limits
        while now - next(iter(keys.values()))[0] > limits.lifetime:
            keys.popitem(last=False)
        if len(keys) > limits.per_agent:
            keys.popitem(last=False)
            self._forgotten.note(record.agent)

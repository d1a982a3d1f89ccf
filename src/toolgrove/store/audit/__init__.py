"""Audit records: one for every call, each bound to the one before it.

- ``record``: what a record says
- ``outcomes``: what counts as refused, failed or waiting
- ``bodies``: what a call was given and what came back, beside its record
- ``caps``: how long each part of a record may be
- ``chain``: how records are bound to each other, and read back
- ``signing``: what they are signed with, and the public half that checks it
- ``notary``: the key of a project, and the mark where the chain stood last
- ``notices``: what a log says about itself: a lost end, a new key, an earlier part
- ``proof``: whether a log is whole, and what could not be checked
- ``unfinished``: calls that began to change something outside and have no end
- ``sinks``: where sealed records go: a ring in memory, a file of JSON Lines
- ``resuming``: what has to be said first when a log goes on
- ``archive``: where records go before retention takes them out of a store
- ``log``: asking for records, page by page
- ``file``: the same from a file of JSON Lines
- ``export``: records as JSON Lines or CSV for other programs
"""

from toolgrove.store.audit.archive import AuditArchive
from toolgrove.store.audit.bodies import NO_BODIES, Bodies
from toolgrove.store.audit.caps import FACTS, capped
from toolgrove.store.audit.chain import (
    GENESIS,
    START,
    ChainedRecord,
    Place,
    Sealed,
    chained,
    hash_of,
    is_signed_by,
    read_record,
    signed,
)
from toolgrove.store.audit.export import as_csv, as_lines
from toolgrove.store.audit.file import AuditFile
from toolgrove.store.audit.log import AuditLog, AuditPage, AuditQuery, ReplayedStore, SealedStore, as_written
from toolgrove.store.audit.notary import Notary, private
from toolgrove.store.audit.notices import BROKEN, naming, newly_sealed
from toolgrove.store.audit.outcomes import outcome_of
from toolgrove.store.audit.proof import NO_TREE, Breach, ChainCheck, Difference, Proof, Served, TreeProof, verify
from toolgrove.store.audit.record import LATE, OUTCOME_UNKNOWN, AuditRecord, Kind, Outcome
from toolgrove.store.audit.resuming import resume
from toolgrove.store.audit.signing import PublicKeys
from toolgrove.store.audit.sinks import RING_BYTES, AuditRing, AuditSink, JsonLines, Tail, close_logs, end_of_log
from toolgrove.store.audit.unfinished import RememberedCall, Unfinished

__all__ = [
    "BROKEN",
    "FACTS",
    "GENESIS",
    "LATE",
    "NO_BODIES",
    "NO_TREE",
    "OUTCOME_UNKNOWN",
    "RING_BYTES",
    "START",
    "AuditArchive",
    "AuditFile",
    "AuditLog",
    "AuditPage",
    "AuditQuery",
    "AuditRecord",
    "AuditRing",
    "AuditSink",
    "Bodies",
    "Breach",
    "ChainCheck",
    "ChainedRecord",
    "Difference",
    "JsonLines",
    "Kind",
    "Notary",
    "Outcome",
    "Place",
    "Proof",
    "PublicKeys",
    "RememberedCall",
    "ReplayedStore",
    "Sealed",
    "SealedStore",
    "Served",
    "Tail",
    "TreeProof",
    "Unfinished",
    "as_csv",
    "as_lines",
    "as_written",
    "capped",
    "chained",
    "close_logs",
    "end_of_log",
    "hash_of",
    "is_signed_by",
    "naming",
    "newly_sealed",
    "outcome_of",
    "private",
    "read_record",
    "resume",
    "signed",
    "verify",
]

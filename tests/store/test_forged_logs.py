"""Whoever has a copy of the audit log and the public key can check it, and nobody without the private key can forge it.

A log is drawn, and what somebody does to it who can write all of it, knows how it is made and has any key but that one.
The judge is the command line: it may say that the log is broken or not proved, and never that it is proved.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from store_kit import ManualClock, Scribe
from toolgrove.cli import main
from toolgrove.store.audit import JsonLines, Notary
from toolgrove.store.journal import JournalEntry, MemoryJournal, SqliteJournal

KEYS = {name: Ed25519PrivateKey.from_private_bytes(name.encode() * 32) for name in ("m",)}
PROVED, BROKEN, NOT_PROVED = 0, 1, 3


class Log(NamedTuple):
    """A log as somebody copied it, and the public key that its owner gave out."""

    lines: list[str]
    key: str

    @property
    def end(self) -> str:
        """The anchor of its end."""
        last = [json.loads(line) for line in self.lines if is_record(line)][-1]
        return f"{last['number']}:{last['hash']}"


def is_record(line: str) -> bool:
    return line.startswith('{"number":')


async def written(folder: Path, kind: str, bursts: Sequence[int], agent: str, key: Path | None = None) -> Log:
    """A log of some bursts of records, by a process that keeps it in a file or beside a store."""
    folder.mkdir()
    if key is not None:
        shutil.copy(key, folder)
    notary, path = Notary(key=folder / "audit.key", mark=folder / "head"), folder / "audit.jsonl"
    sinks, clock = [JsonLines(path, notary)], ManualClock()
    journal: MemoryJournal | SqliteJournal
    if kind == "file":
        journal = MemoryJournal(clock, sinks=sinks, notary=notary)
    else:
        journal = SqliteJournal(folder / "grove.db", clock, sinks=sinks, notary=notary)
    scribe = Scribe()
    await journal.open()
    for burst in bursts:
        entries: list[JournalEntry] = [scribe.audit(agent=agent) for _ in range(burst)]
        async with anyio.create_task_group() as tasks:
            for entry in entries:
                tasks.start_soon(journal.append, entry)
        if isinstance(journal, SqliteJournal):
            await journal.verify()  # all of it is written by now
        clock.now += 1
    await journal.close()
    return Log(path.read_text().splitlines(), notary.public)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Log]:
    """One log of each kind, one of another project that has the same key as a store, and one with a key of its own."""
    folder = tmp_path_factory.mktemp("logs")
    return {
        "file": anyio.run(written, folder / "file", "file", (1, 4, 2), "ann"),
        "store": anyio.run(written, folder / "store", "store", (3, 1, 3), "ann"),
        "twin": anyio.run(written, folder / "twin", "store", (3, 1, 3), "eve", folder / "store" / "audit.key"),
        "other": anyio.run(written, folder / "other", "store", (2, 3, 3), "eve"),
    }


def verdict(folder: Path, lines: Sequence[str], *options: str) -> tuple[int, Any]:
    """The exit status of 'audit verify', and what it says."""
    copy = folder / "copy.jsonl"
    copy.write_text("".join(f"{line}\n" for line in lines))
    with redirect_stdout(io.StringIO()) as said, redirect_stderr(io.StringIO()):
        code = main(["audit", "verify", *options, str(copy), "--json"])
    return code, json.loads(said.getvalue())


def hashed(record: dict[str, Any], number: int, previous: str) -> tuple[str, str]:
    """A record as it stands in the chain at some place, with its plain hash; whoever reads this file can do it."""
    facts = {name: value for name, value in record.items() if name not in ("number", "previous", "hash", "seal")}
    body = json.dumps({"number": number, **facts, "previous": previous}, separators=(",", ":"))
    digest = hashlib.sha256(body.encode()).hexdigest()
    return f'{body[:-1]},"hash":"{digest}"', digest


def chained_anew(lines: Sequence[str], seal: str) -> list[str]:
    """All of them as a new chain, whose seals are kept as they were, left out, junk, or made with another key."""
    chain: list[str] = []
    number, previous = 0, "0" * 64
    for line in lines:
        form = json.loads(line)
        if not is_record(line):
            place, kept = {"number": number, "hash": previous}, form.get("seal", "")
            if "signedTo" in form and seal != "none":
                text = f"end {number}:{previous}"
                mark = KEYS["m"].sign(text.encode()).hex() if seal == "another" else kept
                chain.append(json.dumps({"signedTo": place, "seal": mark}, separators=(",", ":")))
            elif "signedTo" not in form:
                chain.append(line)
            continue
        number += 1
        text, previous = hashed(form, number, previous)
        mark = {
            "kept": form.get("seal", ""),
            "none": "",
            "junk": "0" * 128 if "seal" in form else "",
            "before": "0" * 32,
            "another": KEYS["m"].sign(f"record {previous}".encode()).hex(),
        }[seal]
        chain.append(text + (f',"seal":"{mark}"}}' if mark else "}"))
    return chain


def altered(data: st.DataObject, log: Log, other: Log) -> list[str]:
    """What somebody makes of it who has any key but its own."""
    lines = list(log.lines)
    seals = st.sampled_from(("kept", "none", "junk", "before", "another"))
    records = [at for at, line in enumerate(lines) if is_record(line)]
    match data.draw(
        st.sampled_from(("field", "drop", "swap", "truncate", "splice", "double", "seal", "append", "forget")), "what"
    ):
        case "field":
            at = data.draw(st.sampled_from(records), "at")
            name = data.draw(st.sampled_from(("agent", "operation", "outcome", "timestamp", "callId")), "field")
            lines[at] = json.dumps({**json.loads(lines[at]), name: "mallory"}, separators=(",", ":"))
        case "drop":
            del lines[data.draw(st.sampled_from(records), "at")]
        case "swap":
            a, b = data.draw(st.tuples(st.sampled_from(records), st.sampled_from(records)), "which")
            lines[a], lines[b] = lines[b], lines[a]
        case "truncate":
            lines = lines[: data.draw(st.sampled_from(records), "at")]
        case "splice":
            at = data.draw(st.sampled_from(records), "at")
            then = data.draw(st.one_of(st.just(at), st.integers(0, len(other.lines) - 1)), "then")
            lines = [*lines[:at], *other.lines[then:]]
        case "double":
            at = data.draw(st.sampled_from(records), "at")
            lines.insert(at, lines[at])
        case "seal":
            at = data.draw(st.sampled_from(records), "at")
            lines[at] = json.dumps({**json.loads(lines[at]), "seal": "0" * 128}, separators=(",", ":"))
        case "append":
            new = {**json.loads(lines[records[-1]]), "agent": "mallory"}
            lines.append(json.dumps(new, separators=(",", ":")))
        case "forget":
            lines = [line for line in lines if is_record(line)]
            lines = [json.dumps({**json.loads(line), "agent": "mallory"}, separators=(",", ":")) for line in lines]
    if data.draw(st.booleans(), "chain anew"):
        lines = chained_anew(lines, data.draw(seals, "seals"))
    if data.draw(st.booleans(), "name a key"):
        public = f"ed25519:{KEYS['m'].public_key().public_bytes_raw().hex()}"
        lines.append(json.dumps({"publicKey": public}, separators=(",", ":")))
    return lines


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_nobody_without_the_key_makes_a_log_that_is_proved(
    logs: dict[str, Log], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    log = logs[data.draw(st.sampled_from(("file", "store")), "log")]
    lines = altered(data, log, logs[data.draw(st.sampled_from(("other", "twin")), "other")])
    assume(lines not in (log.lines, logs["twin"].lines))
    # What is left of a log that was cut off was whole once: only an anchor, kept elsewhere, tells that there was more.
    is_older = lines == log.lines[: len(lines)]
    anchored = ("--anchor", log.end) if is_older else ()
    code, proof = verdict(tmp_path_factory.getbasetemp(), lines, "--key", log.key, *anchored)
    assert code in (BROKEN, NOT_PROVED), proof
    assert proof["whole"] is {BROKEN: False, NOT_PROVED: None}[code]


@pytest.mark.parametrize("kind", ["file", "store", "other"])
def test_whoever_has_the_public_key_can_check_a_copy_and_whoever_has_none_proves_nothing(
    logs: dict[str, Log], tmp_path: Path, kind: str
) -> None:
    log, key = logs[kind], tmp_path / "key.pub"
    key.write_text(f"{log.key}\n")
    code, proof = verdict(tmp_path, log.lines, "--key", str(key))
    last = int(log.end.partition(":")[0])
    assert (code, proof["whole"], proof["first"], proof["last"], proof["sealedTo"]) == (PROVED, True, 1, last, last)
    for options in ((), ("--key", next(one.key for one in logs.values() if one.key != log.key))):
        code, proof = verdict(tmp_path, log.lines, *options)
        assert (code, proof["whole"], proof["breach"]) == (NOT_PROVED, None, None)


def test_a_copy_that_ends_before_its_signature_says_up_to_where_it_is_proved(
    logs: dict[str, Log], tmp_path: Path
) -> None:
    log = logs["file"]
    code, proof = verdict(tmp_path, log.lines[:3], "--key", log.key)
    sealed = [json.loads(line)["number"] for line in log.lines[:3] if '"seal"' in line][-1]
    assert (code, proof["sealedTo"], proof["last"]) == (NOT_PROVED, sealed, 3)
    assert proof["unchecked"] == [
        f"record{'s' if sealed < 2 else ''} {'2 to ' if sealed < 2 else ''}3, which no seal of this key covers"
    ]


def test_a_public_key_that_stands_in_the_log_proves_nothing(logs: dict[str, Log], tmp_path: Path) -> None:
    log = logs["store"]
    named = [*log.lines, json.dumps({"publicKey": log.key}, separators=(",", ":"))]
    assert verdict(tmp_path, named)[0] == NOT_PROVED
    assert verdict(tmp_path, named, "--key", log.key)[0] == PROVED
    assert verdict(tmp_path, named, "--key", logs["other"].key)[0] == NOT_PROVED


def test_two_logs_of_one_key_cannot_be_made_into_one(logs: dict[str, Log], tmp_path: Path) -> None:
    log, twin = logs["store"], logs["twin"]
    assert (log.key, len(log.lines)) == (twin.key, len(twin.lines))
    for at in range(1, len(log.lines)):
        assert verdict(tmp_path, [*log.lines[:at], *twin.lines[at:]], "--key", log.key)[0] == BROKEN

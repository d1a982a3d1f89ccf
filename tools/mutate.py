"""Breaks Toolgrove on purpose, one small fault at a time, and records in docs/mutations.md which tests notice.

python tools/mutate.py            runs all faults
python tools/mutate.py WORD …     runs only the faults whose description or file holds one of the words
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "toolgrove"
PAGE = ROOT / "docs" / "mutations.md"
NONE = "**none**"
TESTS = (
    "tests/grove/test_core_scenarios.py",
    "tests/grove/test_extended_scenarios.py",
    "tests/grove/test_versions_and_roots.py",
    "tests/call/test_call_gate.py",
    "tests/tree/test_property_paths.py",
    "tests/grove/test_laws.py",
    "tests/grove/test_state_machine.py",
    "tests/tree/test_selection_dsl.py",
)


@dataclass(frozen=True)
class Fault:
    """One change of the source that a test must notice."""

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = TESTS


FAULTS = (
    Fault("a node may move below one of its descendants", "tree/tree.py", "if parent.is_within(node):", "if parent is node:"),
    Fault("a node placed first lands second", "tree/tree.py", "rank = order[0].rank // 1 - 1", "rank = between(order[0].rank, order[0].rank + 1)"),
    Fault("a write reaches one holder of a shared payload only", "tree/tree.py", "holders = [self.nodes[holder] for holder in self.groups[node.group]]", "holders = [node]"),
    Fault("exclusion does not win", "tree/property_path.py", "if () not in routes.get(key, ())", "if key in value"),
    Fault("an ambiguous letter case picks the first key", "tree/property_path.py", "return twins[0] if len(twins) == 1 else None", "return twins[0] if twins else None"),
    Fault("true equals 1", "tree/json_value.py", "if isinstance(left, bool) or isinstance(right, bool):\n        return False", "if left is None:\n        return right is None"),
    Fault("the lower bound of a range is left out", "tree/predicate.py", "type(found) in _NUMBERS and low <= found <= high", "type(found) in _NUMBERS and low < found <= high"),
    Fault("reversed bounds are accepted", "tree/predicate.py", "if low > high:", "if low is high is None:"),
    Fault("a change of the caller's own view leaves its version current", "tree/workspace.py", "if self.tree_seq > seq or view_changed:", "if self.tree_seq > seq:"),
    Fault("a version from the future is accepted", "tree/workspace.py", "return seq if seq <= self.seq and number == str(seq) else None", "return seq"),
    Fault("a key may be reused for another request", "call/idempotency.py", "if record.request != claim.request:", "if not claim.request:"),
    Fault("a retry with a fresh version counts as another request", "call/idempotency.py", 'frozenset((KEY, "versionToken"))', "frozenset((KEY,))"),
    Fault("waiters do not wait for the first request", "call/idempotency.py", "if running is None:", "if running is None or running.is_set is not None:"),
    Fault("the rate limit admits one call too many", "call/rate_limit.py", "if len(calls) >= self.amount:", "if len(calls) > self.amount:"),
    Fault("a call leaves the rate window late", "call/rate_limit.py", "calls[0] <= now - self.seconds", "calls[0] < now - self.seconds"),
    Fault("read-only mode stops nobody", "types.py", 'return self.role == "editor" and not self.read_only', 'return self.role == "editor"'),
    Fault("guarded names are compared with their letter case", "tree/payload_type.py", ".strip().casefold().translate(", ".strip().translate("),
    Fault("look-alike letters pass the guard", "tree/payload_type.py", ".casefold().translate(_LOOKALIKES)", ".casefold()"),
    Fault("an unchanged order is reported as reordered", "tree/diff.py", "if before == after:", "if not before:"),
    Fault("undo tears nodes away from those built on them", "tree/undo.py", "blocked = changed or _unfit(tree, images)", "blocked = changed"),
    Fault("undo overwrites what others changed since", "tree/undo.py", "blocked = changed or _unfit(tree, images)", "blocked = _unfit(tree, images)"),
    Fault("a node may be pulled into the write root from outside", "tree/boundary.py", "if image is not None and not _is_inside(tree, node_id, root_id, before, then):", "if image is not None and not root_id:"),
    Fault("a page token fits any question", "tree/page_token.py", 'bound = question.encode("utf-8", "surrogatepass") + b"\\0" + body', "bound = body"),
    Fault("the last item of a page is repeated on the next", "tree/position.py", "later = bisect_right(children, rank, key=_rank)", "later = max(0, bisect_right(children, rank, key=_rank) - 1)"),
    Fault("!= is the same as =", "tree/dsl/condition.py", 'negated = condition.op == "!="', "negated = False"),
    Fault("upsert keeps the old values", "tree/merge.py", "{**node.payload, **one.payload}", "{**one.payload, **node.payload}"),
    Fault("replace keeps the old order", "tree/merge.py", "self.tree.reorder(node, wanted[node.id])", "self.tree.reorder(node, list((node.children or {}).values()))"),
    Fault("a replay is recorded as a success", "call/audit.py", '"replayed" if call.replayed else "success"', '"success"'),
    Fault("records are not chained", "store/audit.py", '"previous": previous', '"previous": GENESIS'),
    Fault("the depth limit shows one level more", "tree/view.py", "depth >= self.depth_limit", "depth > self.depth_limit"),
    Fault("a commit that could not be recorded stays", "tools/line.py", "            newest.recorded.take_back()\n", ""),
    Fault("missing values sort first", "tools/searching.py", "return [node for _, node in present] + [node for key, node in keyed if key is None]", "return [node for key, node in keyed if key is None] + [node for _, node in present]"),
    Fault("a snapshot remembers the latest change instead of the first", "tree/history.py", "for commit in reversed(self.back_to(seq)):", "for commit in self.back_to(seq):"),
    Fault("bookmarks outlive their node", "tree/bookmarks.py", "        if not gone:\n", "        if gone:\n"),
    Fault("an id may stand twice in a document", "tree/document.py", "    if twins:\n", "    if len(twins) > len(node_ids):\n"),
    Fault("a change that rests on another revision is kept", "store/sqlite/ledger.py", "if effects.base != revision:", "if effects.base > revision:", ("tests/store/test_store_contract.py",)),
    Fault("a sink that fails makes what is kept look refused", "store/sqlite/copies.py", "except Exception:", "except OSError:", ("tests/store/test_store_contract.py",)),
    Fault("a log keeps the record of an entry that was refused", "store/memory.py", "                    sink.take_back()\n", "                    continue\n", ("tests/store/test_store_contract.py",)),
    Fault("an expired key still answers", "store/sqlite/keys.py", "self._now() - row[0] > self._lifetime", "self._now() < row[0]", ("tests/store/test_store_contract.py",)),
    Fault("a cancelled caller believes that nothing was written", "store/sqlite/writer.py", "while self.outcome is None:", "while self.outcome is self.rows:", ("tests/store/test_store_contract.py",)),
    Fault("a change is taken back though the journal kept it while its caller was cancelled", "call/audit.py", "            self._settled(call, effects)\n            raise", "            raise", ("tests/store/test_reopening.py",)),
    Fault("a write without a version is let through", "tools/source.py", "if declaration.mutates or token is not None:", "if token is not None:"),
    Fault("an old audit record goes before its copy is written", "store/sqlite/ledger.py", "min(number - 1, self._copies.least(number))", "number - 1", ("tests/store/test_retention.py",)),
    Fault("the beginning of the audit log can be cut off unseen", "store/sqlite/audit_log.py", '["previous"] != head.audit_floor', '["previous"] is None', ("tests/store/test_retention.py",)),
    Fault("the end of the audit log can be cut off unseen", "store/sqlite/audit_log.py", 'json.loads(last[1])["hash"] != head.audit_hash', "not last[1]", ("tests/store/test_reopening.py",)),
    Fault("a row that was changed by hand is believed", "store/sqlite/body.py", "if [zlib.crc32(body.encode()) for body in bodies] != [crc for _, crc in rows]:", "if not bodies:", ("tests/store/test_faults.py",)),
    Fault("two processes write one store", "store/sqlite/owner.py", '"BEGIN EXCLUSIVE"', '"BEGIN"', ("tests/store/test_faults.py",)),
    Fault("a read of the state file waits for a writer", "store/state.py", "with self._reading, _as_unavailable(self.path):", "with self._lock, _as_unavailable(self.path):", ("tests/pool/test_pins.py",)),
    Fault("an approval serves twice", "store/approvals.py", "if found.closed_at is None and found.state in", "if found.state in", ("tests/pool/test_approvals.py",)),
    Fault("a source that was replaced runs on", "pool/pool.py", "self._scopes.pop(name).cancel()", "self._scopes.pop(name)", ("tests/pool/test_pool.py",)),
    Fault("a secret in base64 gets out", "pool/spelling.py", "forms.update((encoded, encoded.translate(_URL_SAFE)))", "forms.update((encoded, encoded)[:0])", ("tests/pool/test_secrets.py",)),
    Fault("a definition that changed is offered as it is", "pool/mcp/catalog.py", "if pin is not None and pin.hash and pin.hash != one.digest:", "if pin is not None and not pin.hash:", ("tests/faults/test_metadata.py",)),
    Fault("an answer is held against another definition than the agent's", "pool/mcp/source.py", "check(answer, entry.valid)", "check(answer, self._catalog.entry(entry.tool).valid)", ("tests/faults/test_metadata.py",)),
    Fault("a private address is reached", "pool/http/dialer.py", "if reach not in self._allowed:", 'if reach == "never":', ("tests/pool/http/test_http_addresses.py",)),
    Fault("an approval is good for any arguments", "call/approval.py", "arguments_hash=_digest(text),", 'arguments_hash="",', ("tests/call/test_approval.py",)),
    Fault("a reader calls what changes something", "call/role.py", "if granted(call).mutates and not caller.may_write:", "if granted(call).mutates and caller.read_only:", ("tests/call/test_call_gate.py",)),
    Fault("the second of two credentials is not looked at", "web/identity.py", "if len(given) != 1:", "if not given:", ("tests/web/test_web_identity.py",)),
    Fault("an agent calls as another one", "web/identity.py", "return self.is_operator or self.name == agent", "return self.is_operator or bool(agent)", ("tests/web/test_web_identity.py",)),
)  # fmt: skip


def failing_test(fault: Fault) -> str | None:
    """The first test that notices a fault; None if none does."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "toolgrove"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        target = copy / fault.file
        source = target.read_text()
        if source.count(fault.old) != 1:
            raise SystemExit(f"{fault.file} does not hold exactly once: {fault.old}")
        target.write_text(source.replace(fault.old, fault.new))
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-x",
                "-q",
                "-p",
                "no:cacheprovider",
                "--hypothesis-profile=no-shrink",
                *fault.tests,
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    match = re.search(r"^(?:FAILED|ERROR) \S*?([\w.]+)::([\w.]+)", done.stdout, re.MULTILINE)
    return f"`{match[1]}` {match[2]}" if match else None


def recorded() -> dict[str, str]:
    """What the page says: by description, the test that noticed."""
    text = PAGE.read_text() if PAGE.exists() else ""
    return {what: caught for what, _, caught in re.findall(r"^\| (.+?) \| (`.+?`) \| (.+) \|$", text, re.MULTILINE)}


def record(found: dict[str, str]) -> None:
    """Write the page; what was not run now stands as it was."""
    known = {**recorded(), **found}
    rows = [f"| {fault.what} | `{fault.file}` | {known[fault.what]} |" for fault in FAULTS if fault.what in known]
    noticed = sum(not row.endswith(f"| {NONE} |") for row in rows)
    head = (
        "# Faults that the tests notice\n\nWritten by `tools/mutate.py` from real runs: each row is one small "
        "fault put into the source, and the first test that failed because of it.\n\n"
        f"{noticed} of {len(rows)} noticed.\n\n| fault | file | first test that fails |\n|---|---|---|\n"
    )
    PAGE.write_text(head + "\n".join(rows) + "\n")


def main() -> int:
    words = sys.argv[1:]
    chosen = [fault for fault in FAULTS if not words or any(word in fault.what or word in fault.file for word in words)]
    found: dict[str, str] = {}
    for fault in chosen:
        caught = failing_test(fault)
        print(f"{'missed' if caught is None else 'caught'}: {fault.what} ({caught})", flush=True)
        found[fault.what] = caught or NONE
    record(found)
    return 1 if NONE in found.values() else 0


if __name__ == "__main__":
    sys.exit(main())

"""What is wrong with a history: pure functions that know the promises and nothing of the product.

- an acknowledged change is in every later state, once; one that was refused is in none; no id is given twice
- each compare-and-set that took replaced exactly the value that it named, and no value has two successors
- what a client is shown at a replica never goes back, and is never older than the version that it brought; a version
  token names one state
- one key has one effect, and each repeat of it the same answer
- in the end every replica, a fresh start and a replay of the journal's rows show one tree
- each acknowledged change has one final record, and the journal one entry for each of these records
- a payment arrives at most once for each approval that a person gave, and for none that was rejected; the state of an
  approval is what the records say of its call
- an undo finds its change, and as long as the store keeps what it has, no version is told to be lost
- after a failover to a standby that was behind, what is gone is named on record, and not served after that is known

A change of the lost branch, and only one that a record `store.diverged` names, counts as one whose end nobody knows.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import attrgetter

from histories.history import FIRST, Decision, Fate, History, Look, Operation, Read, Tree, Value

CHANGES = frozenset(
    (
        *("add_child", "update_payload", "move_node", "remove_node", "apply_changes", "import_merge"),
        *("undo", "bookmark", "tag_node", "snapshot_create", "snapshot_delete"),
    )
)
FINAL = frozenset(("success", "failure", "refused", "cancelled", "replayed", "unknown"))
DIVERGED = "store_diverged"
_SHOWN = 8
"""Findings of one kind that are told in full."""


class Judged:
    """A history with what several checks derive from it."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.operations = sorted(history.operations, key=attrgetter("number"))

    @cached_property
    def lost(self) -> frozenset[str]:
        """The versions that the audit log names as gone."""
        records = (one for one in self.history.audit if one["operation"] == "store.diverged")
        return frozenset(version for record in records for version in record["details"]["versions"])

    def fate(self, operation: Operation) -> Fate:
        """What became of it; what the log names as gone is in doubt."""
        is_lost = operation.fate == "took" and operation.success.version in self.lost
        return "unknown" if is_lost else operation.fate

    @cached_property
    def by_subject(self) -> Mapping[str, Sequence[Operation]]:
        """The operations on each subject, in the order in which they began."""
        found: dict[str, list[Operation]] = defaultdict(list)
        for operation in self.operations:
            for subject in operation.sets:
                found[subject].append(operation)
        return found

    @cached_property
    def registers(self) -> Mapping[str, Sequence[Operation]]:
        return {subject: done for subject, done in self.by_subject.items() if subject.startswith("register ")}

    @cached_property
    def last(self) -> Mapping[str, Value]:
        """All subjects as the first of the trees shows them in the end."""
        return self.history.trees[0].subjects() if self.history.trees else {}

    @cached_property
    def chains(self) -> Mapping[str, Mapping[Value, int]]:
        """Register → each value that it had, with its place, from the first to the one in the end."""
        return {subject: self._chain(subject, done) for subject, done in self.registers.items()}

    def _chain(self, subject: str, done: Sequence[Operation]) -> Mapping[Value, int]:
        replaced = {one.sets[subject]: one.replaced for one in done}
        values: list[Value] = []
        value = self.last.get(subject)
        while value is not None and value not in values:
            values.append(value)
            value = replaced.get(value)
        return {value: place for place, value in enumerate(reversed(values))}


def acknowledged_changes_stay(judged: Judged) -> Iterator[str]:
    """Each subject that one client changes is what its changes made of it, in every tree."""
    for tree in judged.history.trees:
        snapshots: dict[str, Value] = {f"snapshot {label}": True for label in judged.history.snapshots}
        shown = tree.subjects() | judged.history.bookmarks | snapshots
        for subject, done in judged.by_subject.items():
            if subject.startswith("register "):
                continue
            possible: list[Value] = [None]
            for operation in done:
                match judged.fate(operation):
                    case "took":
                        possible = [operation.sets[subject]]
                    case "unknown":
                        possible.append(operation.sets[subject])
            if shown.get(subject) not in possible:
                yield (
                    f"{tree.source}: {subject} is {shown.get(subject)!r} and must be "
                    f"{' or '.join(map(repr, possible))} after {done[-1]}"
                )


def no_change_is_doubled(judged: Judged) -> Iterator[str]:
    """A name that was given to one node is on one node, and a label that was given to one snapshot on one."""
    for label, times in Counter(judged.history.snapshots).items():
        if times > 1:
            yield f"there are {times} snapshots {label}, made by {judged.by_subject.get(f'snapshot {label}', 'nobody')}"
    for tree in judged.history.trees:
        for name, ids in tree.named.items():
            if len(ids) > 1:
                made = judged.by_subject.get(f"node {name}", ("nobody",))[0]
                yield f"{tree.source}: {name} is there {len(ids)} times ({', '.join(ids)}), made by {made}"


def no_id_is_given_twice(judged: Judged) -> Iterator[str]:
    """Clients that were told of different nodes were told different ids, and find their node under it."""
    given: dict[str, tuple[str, Operation]] = {}
    for operation in judged.operations:
        if judged.fate(operation) != "took":
            continue
        for name, node_id in operation.success.node_ids.items():
            known = given.setdefault(node_id, (name, operation))
            if known[0] != name:
                yield f"the id {node_id} was given twice: {known[1]} and {operation}"
    for tree in judged.history.trees:
        for node_id, (name, operation) in given.items():
            ids = tree.named.get(name, ())
            if ids and node_id not in ids:
                yield f"{tree.source}: {name} has the id {ids[0]}, and its client was told {node_id} ({operation})"


def chains_are_unbroken(judged: Judged) -> Iterator[str]:
    """Each compare-and-set that took is a link of its register's one chain, and none that was refused."""
    for subject, done in judged.registers.items() if judged.history.trees else ():
        chain = judged.chains[subject]
        if FIRST not in chain:
            yield f"{subject}: {judged.last.get(subject)!r} leads back to {[*chain][:1]}, not to the first value"
        successors: dict[Value, Operation] = {}
        for operation in done:
            value = operation.sets[subject]
            match judged.fate(operation):
                case "took":
                    other = successors.setdefault(operation.replaced, operation)
                    if other is not operation:
                        yield f"{subject}: {operation.replaced!r} has two successors: {other} and {operation}"
                    if value not in chain:
                        yield f"{subject}: {value!r} was acknowledged and is no part of its chain: {operation}"
                case "refused":
                    if value in chain:
                        yield f"{subject}: {value!r} was refused and took all the same: {operation}"


def keys_have_one_effect(judged: Judged) -> Iterator[str]:
    """All successes of one key tell of the same nodes and the same version, and what succeeded is never refused."""
    for operation in judged.operations:
        for call in operation.calls:
            if call.is_repeat and call.told == "refused" and "version" in call.error and not judged.history.may_lose:
                yield f"the key {operation.key} had succeeded, and its repeat was refused: {operation}"
        told = [call for call in operation.calls if call.told == "success" and call.version not in judged.lost]
        if operation.key is not None and len({(call.version, *sorted(call.node_ids.items())) for call in told}) > 1:
            yield f"the key {operation.key} has several answers: {told}"


def reads_show_what_is_kept(judged: Judged) -> Iterator[str]:
    """No read shows a value of a register that it never had, nor a client's own nodes other than it left them."""
    if judged.history.trees and not judged.history.may_lose:
        for read in judged.history.reads:
            chain = judged.chains.get(read.subject)
            if chain is not None and read.value not in chain:
                yield f"{read}: a value that it never had"
    for read in judged.history.reads:
        if not read.is_own:
            continue
        done = [one for one in judged.by_subject[read.subject] if one.number < read.number]
        sure = [one for one in done if one.fate == "took"]
        if sure and read.value != sure[-1].sets[read.subject] and sure[-1].success.version not in judged.lost:
            yield f"{read}: its client had done {sure[-1]}"


def reads_never_go_back(judged: Judged) -> Iterator[str]:
    """At one replica, a client sees each register as it was when it last saw or set it there, or later."""
    seen: dict[tuple[str, str, str], tuple[int, object]] = {}
    for subject, chain in judged.chains.items():
        events: list[tuple[int, str, str, Value, Operation | Read]] = [
            (read.number, read.client, read.replica, read.value, read)
            for read in judged.history.reads
            if read.subject == subject
        ]
        for one in judged.registers[subject]:
            if one.fate == "took":
                events.append((one.number, one.client, one.success.replica, one.sets[subject], one))
        for _, client, replica, value, event in sorted(events, key=lambda one: one[0]):
            place = chain.get(value)
            if place is None:
                continue
            before = seen.get((client, replica, subject))
            if before is not None and place < before[0]:
                yield f"{event}: older than {before[1]}"
            else:
                seen[client, replica, subject] = place, event


def reads_are_as_new_as_asked(judged: Judged) -> Iterator[str]:
    """A read that brings a version shows every register as that version had it, or later."""
    known = _known_of(judged)
    for read in judged.history.reads:
        place = judged.chains.get(read.subject, {}).get(read.value)
        if place is None or read.asked is None or read.asked in judged.lost:
            continue
        floor, why = known.get(read.asked, {}).get(read.subject, (0, None))
        if place < floor:
            yield f"{read}: older than what that version had by {why}"


def _known_of(judged: Judged) -> Mapping[str, Mapping[str, tuple[int, object]]]:
    """Version → register → the least place that it had then, and who says so.

    The answer that carries a version tells of its register. And a change rests on all that was acknowledged before it
    began.
    """
    known: dict[str, dict[str, tuple[int, object]]] = defaultdict(dict)

    def add(version: str, subject: str, value: Value, why: object) -> None:
        place = judged.chains.get(subject, {}).get(value)
        if place is not None and place > known[version].get(subject, (-1, None))[0]:
            known[version][subject] = place, why

    for read in judged.history.reads:
        add(read.version, read.subject, read.value, read)
    took = [one for one in judged.operations if judged.fate(one) == "took"]
    sets = sorted((one for one in took if one.register is not None), key=lambda one: one.success.ended)
    latest: dict[str, tuple[int, object]] = {}
    at = 0
    for one in sorted(took, key=lambda one: one.success.began):
        while at < len(sets) and sets[at].success.ended < one.calls[0].began:
            subject = str(sets[at].register)
            place = judged.chains[subject].get(sets[at].sets[subject])
            if place is not None and place > latest.get(subject, (-1, None))[0]:
                latest[subject] = place, sets[at]
            at += 1
        version = str(one.success.version)
        for subject, floor in latest.items():
            if floor[0] > known[version].get(subject, (-1, None))[0]:
                known[version][subject] = floor
        if one.register is not None:
            add(version, one.register, one.sets[one.register], one)
    return known


def tokens_name_one_state(judged: Judged) -> Iterator[str]:
    """Two changes have two versions, and whoever reads at a version sees the same as anybody else who does."""
    changed: dict[str, Operation] = {}
    for operation in judged.operations:
        if operation.fate == "took":
            other = changed.setdefault(str(operation.success.version), operation)
            if other is not operation:
                yield f"the version {operation.success.version} was given to two changes: {other} and {operation}"
    shown: dict[tuple[str, str], Read] = {}
    for read in judged.history.reads:
        if not read.version or read.is_own:
            continue
        first = shown.setdefault((read.version, read.subject), read)
        if first.value != read.value:
            yield f"the version {read.version} names two states: {first} and {read}"


def undo_finds_its_change(judged: Judged) -> Iterator[str]:
    """Whoever takes back its own last change, by its version, is not told that there is none, or another."""
    if judged.history.may_lose:
        return
    for operation in judged.operations:
        if operation.tool == "undo" and operation.fate == "refused":
            strange = [call for call in operation.calls if call.error.endswith(("nothing_to_undo", "another_change"))]
            if strange:
                yield f"{operation}: {strange[0].error}"


def nothing_is_lost_without_a_failover(judged: Judged) -> Iterator[str]:
    """As long as the store keeps what it has, no replica leaves its history, and every version is in it."""
    history = judged.history
    if history.may_lose:
        return
    for look in history.looks:
        if DIVERGED in look.troubles:
            yield f"{look.replica} said {DIVERGED}, and the store had lost nothing"
    for record in history.audit:
        if record["operation"] == "store.diverged":
            yield f"recorded, and the store had lost nothing: {json.dumps(record)[:500]}"
    if history.refused_lost:
        yield f"{history.refused_lost} version tokens were refused as lost, and none was"


def all_show_one_tree(judged: Judged) -> Iterator[str]:
    """Every replica, a fresh start, and the replay of what is stored."""
    trees = list(judged.history.trees)
    kept = judged.history.stored
    if kept is not None and kept.tree is not None:
        trees.append(kept.tree)
    for tree in trees[1:]:
        for node_id in _differ(trees[0], tree):
            one, other = (at.nodes.get(node_id, "nothing") for at in (trees[0], tree))
            places = "; its children stand in another order" if one == other else ""
            yield f"{node_id} is {one} at {trees[0].source}, and {other} at {tree.source}{places}"


def _differ(one: Tree, other: Tree) -> Sequence[str]:
    ids = sorted({*one.nodes, *other.nodes})
    return [
        node_id
        for node_id in ids
        if one.nodes.get(node_id) != other.nodes.get(node_id) or one.order.get(node_id) != other.order.get(node_id)
    ]


def the_journal_fits(judged: Judged) -> Iterator[str]:
    """Its rows contradict neither each other nor what clients were told."""
    kept = judged.history.stored
    if kept is None:
        return
    yield from kept.problems
    for name, times in kept.born.items():
        done = judged.by_subject.get(f"node {name}", ())
        if times > 1:
            yield f"the journal makes {name} {times} times ({done[0] if done else 'asked for by nobody'})"
        if done and done[0].fate == "refused":
            yield f"the journal makes {name}, which was refused: {done[0]}"
    for subject, values in kept.values.items():
        stands: Value = None
        for value, replaced in values:
            if replaced != stands:
                yield f"the journal sets {subject} to {value!r} in place of {replaced!r}, and there stood {stands!r}"
            stands = value


def audit_and_journal_agree(judged: Judged) -> Iterator[str]:
    """Each acknowledged change has one final record of success, and the journal one entry for each of them."""
    history = judged.history
    if history.stored is None:
        return
    ends = Counter(record["callId"] for record in history.audit if _is_call(record) and record["outcome"] in FINAL)
    yield from (f"the call {call} has {times} final records" for call, times in ends.items() if times > 1)
    done = [record for record in history.audit if _is_call(record) and _is_change(record)]
    of = Counter((record["agent"], record["operation"], record.get("version")) for record in done)
    keys = {(record["agent"], record["idempotencyKey"]) for record in done if "idempotencyKey" in record}
    for operation in judged.operations:
        if judged.fate(operation) == "took":
            times = of[operation.client, operation.tool, operation.success.version]
            if times != 1:
                yield f"there are {times} records of success of {operation}, version {operation.success.version}"
        elif operation.fate == "refused" and (operation.client, operation.key) in keys:
            yield f"there is a record of success of what was refused: {operation}"
    calls, made = {record["callId"] for record in done}, set(history.stored.calls)
    if history.stored.is_whole and calls != made:
        yield f"recorded as success and not in the journal: {sorted(calls - made)[:_SHOWN]}"
        yield f"in the journal and not recorded as success: {sorted(made - calls)[:_SHOWN]}"
    if len(done) != history.stored.changes:
        yield f"the journal has {history.stored.changes} entries, and the audit log tells of {len(done)} changes"


def _is_call(record: Mapping[str, object]) -> bool:
    return record.get("kind", "call") == "call"


def _is_change(record: Mapping[str, object]) -> bool:
    return record["outcome"] == "success" and record["operation"] in CHANGES


def payments_are_approved(judged: Judged) -> Iterator[str]:
    """Each that arrived has an approval of its own, given before; and each that was acknowledged has arrived."""
    history = judged.history
    arrived: dict[str, list[float]] = defaultdict(list)
    given: dict[str, dict[str, float]] = defaultdict(dict)
    for arrival in history.arrivals:
        arrived[arrival.purpose].append(arrival.at)
    for decision in history.decisions:
        if decision.approve and decision.told != "refused":
            began = given[decision.purpose].get(decision.approval, decision.began)
            given[decision.purpose][decision.approval] = min(began, decision.began)
    for payment in history.payments:
        times = len(arrived[payment.purpose])
        told = sum(call.told == "success" for call in payment.calls)
        if told > times:
            yield f"{payment.purpose} was paid {times} times, and its client was told so {told} times: {payment}"
    if history.may_lose:  # an approval may be good again that was used in what is gone
        return
    for purpose, moments in arrived.items():
        approved = sorted(given[purpose].values())
        if len(moments) > len(approved):
            yield f"{purpose} was paid {len(moments)} times, with {len(approved)} approvals: {sorted(given[purpose])}"
        for at, since in zip(sorted(moments), approved, strict=False):
            if at < since:
                yield f"{purpose} was paid {since - at:.3f} s before it was approved"


def decisions_stand(judged: Judged) -> Iterator[str]:
    """Nobody is told of a decision that another one contradicts."""
    if judged.history.may_lose:
        return
    stands: dict[str, Decision] = {}
    for decision in judged.history.decisions:
        if decision.told == "success":
            first = stands.setdefault(decision.approval, decision)
            if first.approve != decision.approve:
                yield f"{decision.approval} was approved and rejected: {first} and {decision}"


def approvals_agree_with_records(judged: Judged) -> Iterator[str]:
    """An approval lets one call begin at most, and its state is what became of that call."""
    history = judged.history
    if history.stored is None or history.may_lose:
        return
    calls: dict[str, dict[str, str]] = defaultdict(dict)
    given_up: dict[str, str] = {}
    for record in history.audit:
        if record["operation"] == "approval.abandoned":
            given_up[record["details"]["claimedBy"]] = record["details"]["approvalId"]
        if record["outcome"] == "begun" and record["callId"] in given_up:
            yield f"the call {record['callId']} began after its claim on {given_up[record['callId']]} was given up"
        if _is_call(record) and record.get("approval") is not None:
            calls[record["approval"]["id"]][record["callId"]] = record["outcome"]
    rejected = {one.approval for one in history.decisions if not one.approve and one.told == "success"}
    for approval in history.approvals:
        name, state = approval["id"], approval["state"]
        became = calls[name]
        if len(became) > 1:
            yield f"the approval {name} was used by several calls: {became}"
        if became and name in rejected:
            yield f"the approval {name} was rejected, and used by {became}"
        fits = {"used": set(FINAL) - {"unknown"}, "unknown": {"unknown"}}.get(state, set())
        if not set(became.values()) <= fits or (state == "used" and not became) or state == "claimed":
            yield f"the approval {name} is {state} in the end, and the records of its call say {became or 'nothing'}"


def what_is_gone_is_told(judged: Judged) -> Iterator[str]:
    """A replica that held what is gone says so at `/ready`, and serves nothing of it after that."""
    history = judged.history
    if not history.may_lose or not judged.lost:
        return
    for record in history.audit:
        if _is_call(record) and _is_change(record) and record.get("version") in judged.lost:
            yield f"the log names {record['version']} as gone, and has the record of its success: {record['callId']}"
    known: dict[str, float] = {}
    for replica, looks in _by_replica(history.looks):
        seen = [look.at for look in looks if look.status == 503 and DIVERGED in look.troubles]
        if seen:
            known[replica] = seen[0]
    if not known:
        yield f"the log names what is gone, and no replica was ever unready with {DIVERGED}"
    values = {one.sets[str(one.register)] for one in _lost(judged) if one.register is not None}
    for read in history.reads:
        if read.began <= known.get(read.replica, float("inf")):
            continue
        if read.value in values and read.value not in judged.chains.get(read.subject, ()):
            yield f"{read}: a value that was known to be gone"
        if read.asked in judged.lost:
            yield f"{read}: answered for a version that was known to be gone"


def _lost(judged: Judged) -> Iterable[Operation]:
    return [one for one in judged.operations if one.fate == "took" and one.success.version in judged.lost]


def _by_replica(looks: Sequence[Look]) -> Iterator[tuple[str, list[Look]]]:
    for replica, those in groupby(sorted(looks, key=lambda look: (look.replica, look.at)), key=attrgetter("replica")):
        yield replica, list(those)


def nothing_kept_from_working(judged: Judged) -> Iterator[str]:
    """Ready again, verified, started afresh, ended gently, without a traceback."""
    yield from judged.history.wrong


CHECKS: Sequence[Callable[[Judged], Iterator[str]]] = (
    nothing_kept_from_working,
    acknowledged_changes_stay,
    no_change_is_doubled,
    no_id_is_given_twice,
    chains_are_unbroken,
    keys_have_one_effect,
    reads_show_what_is_kept,
    reads_never_go_back,
    reads_are_as_new_as_asked,
    tokens_name_one_state,
    undo_finds_its_change,
    nothing_is_lost_without_a_failover,
    all_show_one_tree,
    the_journal_fits,
    audit_and_journal_agree,
    payments_are_approved,
    decisions_stand,
    approvals_agree_with_records,
    what_is_gone_is_told,
)


def findings(history: History) -> dict[str, list[str]]:
    """Check → what it found; nothing where all is well."""
    judged = Judged(history)
    found = {check.__name__: list(check(judged)) for check in CHECKS}
    return {name: told for name, told in found.items() if told}


def told(found: Mapping[str, Sequence[str]]) -> str:
    """Findings for a person, a few of each kind."""
    lines = []
    for name, each in found.items():
        lines.append(f"{name.replace('_', ' ')}: {len(each)}")
        lines += [f"  - {one}" for one in each[:_SHOWN]]
    return "\n".join(lines)

"""Each check passes a good history, and tells what is wrong with a bad one; both are made by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from histories.checks import findings
from histories.history import (
    FIRST,
    Arrival,
    Call,
    Decision,
    Fate,
    History,
    Look,
    Operation,
    Payment,
    Read,
    Stored,
    Told,
    Tree,
    Value,
)

_TOLD: Mapping[Fate, Told] = {"took": "success", "refused": "refused", "unknown": "unknown"}


def changed(
    number: int,
    subject: str,
    value: Value,
    *,
    tool: str = "add_child",
    client: str = "c1",
    replaced: Value = None,
    fate: Fate = "took",
    replica: str = "one",
    node_id: str = "",
    key: str | None = None,
) -> Operation:
    """A change in one call; it lasts from its number to a half later."""
    version = f"v-{number}" if fate == "took" else None
    ids = {subject.partition(" ")[2]: node_id} if node_id else {}
    call = Call(
        replica=replica, began=number, ended=number + 0.5, told=_TOLD[fate], version=version, node_ids=ids, error=""
    )
    return Operation(
        number=number, client=client, tool=tool, sets={subject: value}, key=key, replaced=replaced, calls=[call]
    )


def read(number: int, value: Value, version: str, *, client: str = "c1", **more: Any) -> Read:
    """A read of the register at replica one."""
    form: dict[str, Any] = {"subject": "register r", "replica": "one"} | more
    return Read(number=number, client=client, began=number, ended=number + 0.5, value=value, version=version, **form)


def tree(source: str, *, value: Value = "b", without: str = "", **names: str) -> Tree:
    """The register, and nodes by id that stand below the bed."""
    register: dict[str, Any] = {"name": "r", "value": value, "replaced": None}
    nodes: dict[str, tuple[str | None, str, Mapping[str, Any], tuple[str, ...]]] = {
        "root": (None, "Root", {}, ()),
        "r": ("root", "Note", register, ()),
        "bed": ("root", "Note", {"name": "bed"}, ()),
    }
    for node_id, name in ({"n1": "x"} | names).items():
        nodes[node_id] = ("bed", "Note", {"name": name}, ())
    nodes.pop(without, None)
    return Tree(source=source, nodes=nodes, order={"root": ("r", "bed")})


def record(operation: Operation, outcome: str = "success", call: str = "") -> dict[str, Any]:
    return {
        "callId": call or f"call-{operation.number}",
        "agent": operation.client,
        "operation": operation.tool,
        "outcome": outcome,
        "version": operation.calls[-1].version,
    }


def good() -> History:
    """One add, a register that was set twice, and a third value that was refused."""
    operations = [
        changed(1, "node x", "bed", node_id="n1"),
        changed(2, "register r", "a", tool="update_payload", replaced=FIRST, client="c2"),
        changed(5, "register r", "b", tool="update_payload", replaced="a"),
        changed(6, "register r", "z", tool="update_payload", replaced="a", fate="refused", client="c2"),
    ]
    return History(
        seed="by hand",
        operations=operations,
        reads=[
            read(3, "a", "v-2", asked="v-2"),
            read(4, "a", "v-2", client="c2"),
            read(7, "b", "v-5", asked="v-5", client="c2"),
        ],
        looks=[Look(replica="one", at=1, status=200)],
        trees=[tree("one"), tree("two"), tree("a fresh start")],
        audit=[record(one) for one in operations[:3]],
        stored=Stored(
            problems=[],
            tree=tree("the journal's rows"),
            changes=3,
            calls=["call-1", "call-2", "call-5"],
            is_whole=True,
            born={"x": 1},
            values={"register r": [(FIRST, None), ("a", FIRST), ("b", "a")]},
        ),
    )


PAID = {"kind": "call", "callId": "call-10", "agent": "p", "operation": "pay", "approval": {"id": "ap-1"}}


def paid() -> History:
    """A payment that was approved and made, and one that was rejected."""
    history = good()
    call = Call(replica="one", began=10, ended=12, told="success")
    history.payments = [Payment(number=10, client="p", purpose="p-10", calls=[call])]
    history.decisions = [
        Decision(approval="ap-1", purpose="p-10", approve=True, told="success", began=10),
        Decision(approval="ap-1", purpose="p-10", approve=False, told="refused", began=10),
        Decision(approval="ap-2", purpose="p-11", approve=False, told="success", began=11),
    ]
    history.arrivals = [Arrival(purpose="p-10", at=11)]
    history.approvals = [{"id": "ap-1", "state": "used"}, {"id": "ap-2", "state": "rejected"}]
    history.audit += [PAID | {"outcome": "begun"}, PAID | {"outcome": "success"}]
    return history


def _paid_without_approval(history: History) -> None:
    history.arrivals.append(Arrival(purpose="p-11", at=12))


def _paid_twice(history: History) -> None:
    history.arrivals.append(Arrival(purpose="p-10", at=12))


def _paid_too_early(history: History) -> None:
    history.arrivals = [Arrival(purpose="p-10", at=9)]


def _never_paid(history: History) -> None:
    history.arrivals = []


def _two_verdicts(history: History) -> None:
    history.decisions[1] = replace(history.decisions[1], told="success")


def _used_by_two(history: History) -> None:
    history.audit.append(PAID | {"callId": "call-11", "outcome": "success"})


def _used_though_rejected(history: History) -> None:
    history.audit.append(PAID | {"callId": "call-11", "outcome": "success", "approval": {"id": "ap-2"}})


def _began_after_its_claim_was_given_up(history: History) -> None:
    details = {"claimedBy": "call-10", "approvalId": "ap-1"}
    gone = {"kind": "approval", "callId": "", "operation": "approval.abandoned", "outcome": "success"}
    history.audit.insert(0, gone | {"details": details})


def _in_state(state: str) -> Callable[[History], None]:
    def spoil(history: History) -> None:
        history.approvals[0] = {"id": "ap-1", "state": state}

    return spoil


def test_a_payment_with_an_approval_is_found_good() -> None:
    assert findings(paid()) == {}


@pytest.mark.parametrize(
    ("spoil", "check"),
    [
        (_paid_without_approval, "payments_are_approved"),
        (_paid_twice, "payments_are_approved"),
        (_paid_too_early, "payments_are_approved"),
        (_never_paid, "payments_are_approved"),
        (_two_verdicts, "decisions_stand"),
        (_used_by_two, "approvals_agree_with_records"),
        (_used_though_rejected, "approvals_agree_with_records"),
        (_began_after_its_claim_was_given_up, "approvals_agree_with_records"),
        (_in_state("unknown"), "approvals_agree_with_records"),
        (_in_state("approved"), "approvals_agree_with_records"),
        (_in_state("claimed"), "approvals_agree_with_records"),
    ],
)
def test_what_is_wrong_with_a_payment_is_told(spoil: Callable[[History], None], check: str) -> None:
    history = paid()
    spoil(history)
    assert findings(history).get(check), findings(history)


def test_a_good_history_is_found_good() -> None:
    assert findings(good()) == {}


def _every_tree(history: History, **shown: Any) -> None:
    history.trees = [tree(one.source, **shown) for one in history.trees]
    assert history.stored is not None
    history.stored = replace(history.stored, tree=tree("the journal's rows", **shown))


def _lost_add(history: History) -> None:
    _every_tree(history, without="n1")


def _refused_add(history: History) -> None:
    history.operations.append(changed(8, "node y", "bed", fate="refused"))
    _every_tree(history, n2="y")


def _doubled(history: History) -> None:
    _every_tree(history, n2="x")


def _doubled_snapshot(history: History) -> None:
    history.operations.append(changed(8, "snapshot s", True, tool="snapshot_create"))
    history.snapshots = ["s", "s"]


def _lost_snapshot(history: History) -> None:
    history.operations.append(changed(8, "snapshot s", True, tool="snapshot_create"))


def _same_id(history: History) -> None:
    history.operations.append(changed(8, "node y", "bed", node_id="n1"))


def _another_id(history: History) -> None:
    history.operations[0] = changed(1, "node x", "bed", node_id="n7")


def _two_successors(history: History) -> None:
    history.operations[3] = changed(6, "register r", "z", tool="update_payload", replaced="a", client="c2")


def _refused_set(history: History) -> None:
    history.operations[2] = changed(5, "register r", "b", tool="update_payload", replaced="a", fate="refused")


def _from_nowhere(history: History) -> None:
    _every_tree(history, value="q")


def _lost_bookmark(history: History) -> None:
    history.operations.append(changed(8, "bookmark c1 l", "bed", tool="bookmark"))


def _two_answers(history: History) -> None:
    one = history.operations[0]
    again = replace(one.calls[0], version="v-9", node_ids={"x": "n9"}, is_repeat=True)
    history.operations[0] = replace(one, key="k", calls=[*one.calls, again])


def _refused_repeat(history: History) -> None:
    one = history.operations[0]
    again = replace(one.calls[0], told="refused", version=None, error="conflict stale_version", is_repeat=True)
    history.operations[0] = replace(one, key="k", calls=[*one.calls, again])


def _back(history: History) -> None:
    history.reads.append(read(8, FIRST, "v-1"))


def _behind_its_own_set(history: History) -> None:
    history.reads.append(read(6, "a", "v-2"))


def _older_than_asked(history: History) -> None:
    history.reads.append(read(8, "a", "v-2", asked="v-5", client="c3"))


def _older_than_what_was_acknowledged_before(history: History) -> None:
    history.operations.append(changed(8, "node y", "bed", client="c3", node_id="n2"))
    _every_tree(history, n2="y")
    history.reads.append(read(9, "a", "v-2", asked="v-8", client="c4"))


def _never_there(history: History) -> None:
    history.reads.append(read(8, "z", "v-6", client="c3"))


def _own_node_gone(history: History) -> None:
    history.reads.append(read(8, None, "", subject="node x", is_own=True))


def _two_states(history: History) -> None:
    history.reads.append(read(1, FIRST, "v-2", client="c3", replica="two"))


def _two_changes(history: History) -> None:
    one = history.operations[1]
    history.operations[1] = replace(one, calls=[replace(one.calls[0], version="v-1")])


def _undo_finds_nothing(history: History) -> None:
    undo = changed(8, "node x", None, tool="undo", fate="refused")
    call = replace(undo.calls[0], error="not_found nothing_to_undo")
    history.operations.append(replace(undo, calls=[call]))


def _diverged(history: History) -> None:
    history.looks.append(Look(replica="one", at=2, status=503, troubles=["store_diverged"]))


def _diverged_on_record(history: History) -> None:
    history.audit.append(
        {
            "operation": "store.diverged",
            "kind": "store",
            "callId": "x",
            "outcome": "success",
            "details": {"versions": []},
        }
    )


def _refused_as_lost(history: History) -> None:
    history.refused_lost = 1


def _apart(history: History) -> None:
    history.trees[1] = tree("two", value="a")


def _another_order(history: History) -> None:
    history.trees[2] = replace(history.trees[2], order={"root": ("bed", "r")})


def _journal(**changes: Any) -> Callable[[History], None]:
    def spoil(history: History) -> None:
        assert history.stored is not None
        history.stored = replace(history.stored, **changes)

    return spoil


def _unrecorded(history: History) -> None:
    del history.audit[0]


def _recorded_twice(history: History) -> None:
    history.audit.append(record(history.operations[0], "unknown"))


def _refused_and_recorded(history: History) -> None:
    refused = changed(8, "node y", "bed", fate="refused", key="k8")
    history.operations.append(refused)
    history.audit.append(record(refused) | {"idempotencyKey": "k8"})


def _not_ready(history: History) -> None:
    history.wrong.append("one is not ready")


@pytest.mark.parametrize(
    ("spoil", "check"),
    [
        (_lost_add, "acknowledged_changes_stay"),
        (_refused_add, "acknowledged_changes_stay"),
        (_lost_bookmark, "acknowledged_changes_stay"),
        (_lost_snapshot, "acknowledged_changes_stay"),
        (_doubled, "no_change_is_doubled"),
        (_doubled_snapshot, "no_change_is_doubled"),
        (_same_id, "no_id_is_given_twice"),
        (_another_id, "no_id_is_given_twice"),
        (_two_successors, "chains_are_unbroken"),
        (_refused_set, "chains_are_unbroken"),
        (_from_nowhere, "chains_are_unbroken"),
        (_two_answers, "keys_have_one_effect"),
        (_refused_repeat, "keys_have_one_effect"),
        (_never_there, "reads_show_what_is_kept"),
        (_own_node_gone, "reads_show_what_is_kept"),
        (_back, "reads_never_go_back"),
        (_behind_its_own_set, "reads_never_go_back"),
        (_older_than_asked, "reads_are_as_new_as_asked"),
        (_older_than_what_was_acknowledged_before, "reads_are_as_new_as_asked"),
        (_two_states, "tokens_name_one_state"),
        (_two_changes, "tokens_name_one_state"),
        (_undo_finds_nothing, "undo_finds_its_change"),
        (_diverged, "nothing_is_lost_without_a_failover"),
        (_diverged_on_record, "nothing_is_lost_without_a_failover"),
        (_refused_as_lost, "nothing_is_lost_without_a_failover"),
        (_apart, "all_show_one_tree"),
        (_another_order, "all_show_one_tree"),
        (_journal(problems=["entry 2 is missing"]), "the_journal_fits"),
        (_journal(born={"x": 2}), "the_journal_fits"),
        (_journal(values={"register r": [(FIRST, None), ("b", "a")]}), "the_journal_fits"),
        (_journal(calls=["call-1", "call-2", "call-4"]), "audit_and_journal_agree"),
        (_journal(changes=4), "audit_and_journal_agree"),
        (_unrecorded, "audit_and_journal_agree"),
        (_recorded_twice, "audit_and_journal_agree"),
        (_refused_and_recorded, "audit_and_journal_agree"),
        (_not_ready, "nothing_kept_from_working"),
    ],
)
def test_what_is_wrong_with_a_history_is_told(spoil: Callable[[History], None], check: str) -> None:
    history = good()
    spoil(history)
    assert findings(history).get(check), findings(history)


def test_a_change_whose_end_is_unknown_may_be_there_or_not() -> None:
    history = good()
    history.operations.append(changed(8, "node y", "bed", fate="unknown"))
    assert findings(history) == {}
    _every_tree(history, n2="y")
    assert findings(history) == {}


def failed_over() -> History:
    """The standby lacked the second value of the register, and the log says so."""
    history = good()
    history.may_lose = True
    _every_tree(history, value="a")
    history.looks += [Look(replica="one", at=6, status=503, troubles=["store_diverged"])]
    del history.operations[3], history.reads[2], history.audit[2]
    history.audit.append(
        {"operation": "store.diverged", "kind": "store", "callId": "x", "details": {"versions": ["v-5"]}}
    )
    _journal(values={"register r": [(FIRST, None), ("a", FIRST)]}, changes=2, calls=["call-1", "call-2"])(history)
    return history


def _unnamed(history: History) -> None:
    history.audit[-1]["details"] = {"versions": []}


def _named_and_there(history: History) -> None:
    history.audit.append(record(history.operations[2]))


def _untold(history: History) -> None:
    del history.looks[-1]


def _served_still(history: History) -> None:
    history.reads.append(read(8, "b", "v-5", client="c3"))


def _answered_still(history: History) -> None:
    history.reads.append(read(8, "a", "v-2", client="c3", asked="v-5"))


def test_what_a_failover_lost_may_be_gone_if_the_log_names_it() -> None:
    assert findings(failed_over()) == {}


@pytest.mark.parametrize(
    ("spoil", "check"),
    [
        (_unnamed, "chains_are_unbroken"),
        (_unnamed, "audit_and_journal_agree"),
        (_named_and_there, "what_is_gone_is_told"),
        (_untold, "what_is_gone_is_told"),
        (_served_still, "what_is_gone_is_told"),
        (_answered_still, "what_is_gone_is_told"),
    ],
)
def test_what_a_failover_lost_is_named_and_not_served(spoil: Callable[[History], None], check: str) -> None:
    history = failed_over()
    spoil(history)
    assert findings(history).get(check), findings(history)

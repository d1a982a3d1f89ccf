"""Breaks the source on purpose, one small fault at a time, and records in docs/mutations.md whether its test notices.

A fault is noticed if the test that it names passes without it and fails with it.

python tools/mutate.py            runs all faults
python tools/mutate.py WORD …     runs only the faults whose description or file holds one of the words
python tools/mutate.py --check    runs none; says whether every fault still fits the source and stands on the page
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
PAGE = ROOT / "docs" / "mutations.md"
HEAD = """# Faults that the tests notice

Written by `tools/mutate.py` from real runs. Each row is one small fault put into the source and the test that is there
to notice it: it passes without the fault and fails with it.

{noticed} of {all} noticed.

| fault | file | test | noticed |
|---|---|---|---|
"""
HUNG = 300
"""Seconds; a test that is not done by then has not noticed anything."""


@dataclass(frozen=True)
class Fault:
    """One change of the source, and the test that must notice it."""

    what: str
    file: str
    old: str
    new: str
    test: str

    def misfit(self) -> str | None:
        """Why the fault cannot be put into the source as it is now."""
        path, (test_file, _, test) = SOURCE / self.file, self.test.partition("::")
        if not path.is_file():
            return f"there is no src/{self.file}"
        if path.read_text().count(self.old) != 1:
            return f"src/{self.file} does not hold exactly once: {self.old}"
        tests = ROOT / "tests" / test_file
        if not tests.is_file() or f"def {test}(" not in tests.read_text():
            return f"there is no tests/{self.test}"
        return None

    def row(self, noticed: bool) -> str:
        """Its line on the page."""
        return f"| {self.what} | `{self.file}` | `{self.test}` | {'yes' if noticed else '**no**'} |"


FAULTS = (
    Fault("a node may move below one of its descendants", "toolgrove/tree/tree.py", "if parent.is_within(node):", "if parent is node:", "grove/test_versions_and_roots.py::test_structure_cannot_be_broken"),
    Fault("a node placed first lands second", "toolgrove/tree/tree.py", "rank = order[0].rank // 1 - 1", "rank = between(order[0].rank, order[0].rank + 1)", "grove/test_extended_scenarios.py::test_a_node_moves_right_before_or_after_a_sibling"),
    Fault("a write reaches one holder of a shared payload only", "toolgrove/tree/tree.py", "holders = [self.nodes[holder] for holder in self.groups[node.group]]", "holders = [node]", "grove/test_extended_scenarios.py::test_a_reference_copy_shares_payloads_and_a_duplicate_does_not"),
    Fault("exclusion does not win", "toolgrove/tree/property_path.py", "if () not in routes.get(key, ())", "if key in value", "grove/test_core_scenarios.py::test_included_paths_keep_what_is_equal_or_under_them_and_exclusion_wins"),
    Fault("an ambiguous letter case picks the first key", "toolgrove/tree/property_path.py", "return twins[0] if len(twins) == 1 else None", "return twins[0] if twins else None", "tree/test_property_paths.py::test_the_exact_key_comes_first_and_only_a_unique_other_case_counts"),
    Fault("true equals 1", "toolgrove/notation/json_value.py", "if isinstance(left, bool) or isinstance(right, bool):\n        return False", "if left is None:\n        return right is None", "tree/test_property_paths.py::test_equality_is_json_equality"),
    Fault("the lower bound of a range is left out", "toolgrove/tree/predicate.py", "type(found) in _NUMBERS and low <= found <= high", "type(found) in _NUMBERS and low < found <= high", "grove/test_extended_scenarios.py::test_advanced_search_honours_groups_ranges_sorting_and_pages"),
    Fault("reversed bounds are accepted", "toolgrove/tree/predicate.py", "if low > high:", "if low is high is None:", "tree/test_property_paths.py::test_a_range_without_sense_is_refused"),
    Fault("a change of the caller's own view leaves its version current", "toolgrove/tree/workspace.py", "if self.tree_seq > seq or view_changed:", "if self.tree_seq > seq:", "grove/test_versions_and_roots.py::test_a_version_is_current_until_the_tree_or_the_callers_own_view_changes"),
    Fault("a version from the future is accepted", "toolgrove/tree/workspace.py", "return seq if seq < self._oldest or self._lineage.term_at(seq) == term else None", "return seq", "grove/test_core_scenarios.py::test_a_missing_or_stale_version_is_a_conflict_with_the_latest_and_what_changed"),
    Fault("a key may be reused for another request", "toolgrove/call/idempotency.py", "if record.request != claim.request:", "if not claim.request:", "grove/test_core_scenarios.py::test_a_repeated_key_gives_the_first_result_and_no_second_effect"),
    Fault("a retry with a fresh version counts as another request", "toolgrove/call/idempotency.py", 'frozenset((KEY, "versionToken"))', "frozenset((KEY,))", "grove/test_core_scenarios.py::test_a_repeated_key_gives_the_first_result_and_no_second_effect"),
    Fault("waiters do not wait for the first request", "toolgrove/call/idempotency.py", "if running is not None:", "if running is not None and running.is_set is None:", "call/test_call_gate.py::test_two_hundred_racing_repeats_have_one_effect_and_one_answer"),
    Fault("the rate limit admits one call too many", "toolgrove/budgets.py", "if len(events) >= amount else", "if len(events) > amount else", "call/test_call_gate.py::test_a_rate_limit_admits_exactly_its_number_and_ignores_the_wall_clock"),
    Fault("a call leaves the rate window late", "toolgrove/budgets.py", "events[0] <= now - self._seconds", "events[0] < now - self._seconds", "grove/test_core_scenarios.py::test_an_agent_over_its_rate_is_told_when_to_come_back"),
    Fault("read-only mode stops nobody", "toolgrove/types.py", 'return self.role == "editor" and not self.read_only', 'return self.role == "editor"', "grove/test_core_scenarios.py::test_read_only_mode_stops_every_mutation_of_everyone"),
    Fault("guarded names are compared with their letter case", "toolgrove/tree/payload_type.py", ".strip().casefold().translate(", ".strip().translate(", "grove/test_core_scenarios.py::test_guarded_properties_of_a_self_payload_node_cannot_be_written_by_any_path"),
    Fault("look-alike letters pass the guard", "toolgrove/tree/payload_type.py", ".casefold().translate(_LOOKALIKES)", ".casefold()", "grove/test_core_scenarios.py::test_guarded_properties_of_a_self_payload_node_cannot_be_written_by_any_path"),
    Fault("an unchanged order is reported as reordered", "toolgrove/tree/diff.py", "if before == after:", "if not before:", "grove/test_extended_scenarios.py::test_nodes_that_changed_places_and_changed_back_are_not_reordered"),
    Fault("undo tears nodes away from those built on them", "toolgrove/tree/undo.py", "blocked = changed or _unfit(tree, images)", "blocked = changed", "grove/test_versions_and_roots.py::test_undo_is_blocked_where_others_have_built_on_the_change"),
    Fault("undo overwrites what others changed since", "toolgrove/tree/undo.py", "blocked = changed or _unfit(tree, images)", "blocked = _unfit(tree, images)", "grove/test_versions_and_roots.py::test_undo_is_blocked_where_others_have_built_on_the_change"),
    Fault("a node may be pulled into the write root from outside", "toolgrove/tree/boundary.py", "if image is not None and not _is_inside(tree, node_id, root_id, before, then):", "if image is not None and not root_id:", "grove/test_versions_and_roots.py::test_an_agent_with_a_write_root_cannot_write_outside_it"),
    Fault("a page token fits any question", "toolgrove/tree/page_token.py", 'bound = question.encode("utf-8", "surrogatepass") + b"\\0" + body', "bound = body", "grove/test_versions_and_roots.py::test_page_tokens_are_bound_to_agent_tool_arguments_and_session"),
    Fault("the last item of a page is repeated on the next", "toolgrove/tree/position.py", "later = bisect_right(children, rank, key=_rank)", "later = max(0, bisect_right(children, rank, key=_rank) - 1)", "grove/test_core_scenarios.py::test_the_core_read_tools_succeed_with_all_their_arguments"),
    Fault("!= is the same as =", "toolgrove/tree/dsl/condition.py", 'negated = condition.op == "!="', "negated = False", "grove/test_extended_scenarios.py::test_a_query_selects_nodes_in_tree_order"),
    Fault("upsert keeps the old values", "toolgrove/tree/merge.py", "{**node.payload, **one.payload}", "{**one.payload, **node.payload}", "grove/test_extended_scenarios.py::test_the_three_merge_strategies_differ_as_they_say"),
    Fault("replace keeps the old order", "toolgrove/tree/merge.py", "self._reorder(node, [*wanted[node.id], *rest])", "self._reorder(node, list((node.children or {}).values()))", "grove/test_extended_scenarios.py::test_replacing_and_upserting_take_over_the_order_of_the_document_and_skipping_does_not"),
    Fault("a replay is recorded as a success", "toolgrove/call/audit.py", '"replayed" if call.replayed else "success"', '"success"', "grove/test_core_scenarios.py::test_every_call_is_logged_also_reads_refusals_and_replays"),
    Fault("records are not chained", "toolgrove/store/audit/chain.py", '"previous":"{after.hash}"', '"previous":"{GENESIS}"', "call/test_call_gate.py::test_the_audit_chain_shows_any_alteration"),
    Fault("the depth limit shows one level more", "toolgrove/tree/view.py", "depth >= self.depth_limit", "depth > self.depth_limit", "grove/test_core_scenarios.py::test_depth_and_page_size_bound_the_answer_and_a_token_continues_it"),
    Fault("a commit that could not be recorded stays", "toolgrove/tools/pending_writes.py", "            newest.recorded.take_back()\n", "", "call/test_call_gate.py::test_a_mutation_that_cannot_be_recorded_does_not_happen_and_a_read_goes_on"),
    Fault("an answer is not kept within its budget", "toolgrove/tools/source.py", "return result if context.budget is None else fitted(result, context.budget - _VERSION, rest)", "return result", "tools/test_answer_sizes.py::test_no_answer_exceeds_its_budget_and_what_is_cut_is_told"),
    Fault("a model over MCP gets whole documents", "toolgrove/mcp_face.py", "call.for_model = True", "call.for_model = False", "tools/test_answer_sizes.py::test_a_document_is_whole_for_a_program_and_bounded_for_a_model"),
    Fault("a figure sees what the session hides", "toolgrove/tools/searching.py", "shown=context.view.view_filter,", "shown=type(context.view.view_filter)(),", "tools/test_overviews.py::test_what_a_session_does_not_want_to_see_is_in_no_figure_and_no_description"),
    Fault("OPML may declare entities", "toolgrove/tree/formats/opml.py", "    parser.StartDoctypeDeclHandler = no_dtd\n    parser.EntityDeclHandler = no_dtd\n", "", "tools/test_text_formats.py::test_a_text_that_cannot_be_read_is_refused_with_its_line_and_changes_nothing"),
    Fault("a formula goes into a table as it is", "toolgrove/tree/formats/table.py", "if text.startswith(_RISKY) or text != text.strip()", "if False", "tools/test_text_formats.py::test_no_cell_of_a_table_is_a_formula_and_no_name_is_markup"),
    Fault("a cut text does not say so", "toolgrove/tree/formats/fitting.py", 'if cut.noted() else ""', 'if False else ""', "tools/test_text_formats.py::test_a_text_that_was_cut_says_so_and_replaces_nothing"),
    Fault("missing values sort first", "toolgrove/tools/order.py", "return [node for _, node in present] + [node for key, node in keyed if key is None]", "return [node for key, node in keyed if key is None] + [node for _, node in present]", "grove/test_extended_scenarios.py::test_advanced_search_honours_groups_ranges_sorting_and_pages"),
    Fault("a snapshot remembers the latest change instead of the first", "toolgrove/tree/history.py", "for commit in reversed(self.back_to(seq)):", "for commit in self.back_to(seq):", "grove/test_versions_and_roots.py::test_history_is_bounded_and_says_so_but_a_snapshot_keeps_what_it_needs"),
    Fault("bookmarks outlive their node", "toolgrove/tree/bookmarks.py", "        if not gone:\n", "        if gone:\n", "grove/test_extended_scenarios.py::test_bookmarks_belong_to_the_agent_and_fall_with_their_node"),
    Fault("an id may stand twice in a document", "toolgrove/tree/document.py", "    if twins:\n", "    if len(twins) > len(node_ids):\n", "grove/test_extended_scenarios.py::test_a_bad_document_is_refused_by_name_and_changes_nothing"),
    Fault("a change that rests on another revision is kept", "toolgrove/store/journal/tables/entries.py", "if effects.parent != newest:", "if effects.base > revision:", "store/test_store_contract.py::test_a_change_that_rests_on_another_revision_is_refused_whole"),
    Fault("a change is kept on another one with the same number", "toolgrove/store/journal/tables/entries.py", "if effects.parent != newest:", "if effects.base != revision:", "store/test_one_history.py::test_nothing_that_rests_on_a_refused_entry_is_taken_though_the_numbers_agree"),
    Fault("a sink that fails makes what is kept look refused", "toolgrove/store/journal/tables/audit_copies.py", "except Exception:", "except OSError:", "store/test_store_contract.py::test_a_sink_that_fails_leaves_the_other_logs_whole"),
    Fault("a log keeps the record of an entry that was refused", "toolgrove/store/journal/memory.py", "                    sink.take_back()\n", "                    continue\n", "store/test_store_contract.py::test_a_sink_that_fails_leaves_the_other_logs_whole"),
    Fault("an expired key still answers", "toolgrove/store/journal/tables/idempotency_keys.py", "row is None or row[0] - row[1] > self._lifetime", "row is None or row[0] < row[1]", "store/test_store_contract.py::test_a_key_expires_and_its_place_is_free_again"),
    Fault("the keys of replicas go by each machine's own clock", "toolgrove/store/journal/postgres/opening.py", "limits, now=_NOW)", "limits, now=None)", "store/test_key_clocks.py::test_a_key_has_one_effect_in_its_lifetime_whatever_the_clocks_of_the_replicas_say"),
    Fault("a call that another replica closed ends a second time", "toolgrove/store/journal/postgres/replicas.py", "if rows.audit.call_id in closed else rows", "if not rows.audit else rows", "store/test_frozen_replicas.py::test_a_call_has_one_end_whoever_freezes_closes_and_wakes"),
    Fault("a process that is too old for the schema goes on writing", "toolgrove/store/journal/postgres/ledger.py", "if oldest > version():", "if oldest > version() + 1:", "store/test_schema_versions.py::test_a_replica_that_is_too_old_for_the_schema_writes_nothing_more_and_says_why"),
    Fault("the backup of another project is put in the place of this one", "toolgrove/store/backup/restoring.py", "if known is not None and is_other and not other_project:", "if known is not None and is_other and other_project:", "cli/test_cli_backup.py::test_the_backup_of_another_project_is_refused_whole_unless_it_is_asked_for"),
    Fault("a database of another project is written by who meets it there", "toolgrove/store/postgres/connecting.py", "    if known is not None:\n", "    if known is address:\n", "store/test_projects.py::test_a_database_of_another_project_under_the_same_address_keeps_a_replica_unready"),
    Fault("a cancelled caller believes that nothing was written", "toolgrove/store/journal/tables/writer.py", "while self.outcome is None:", "while self.outcome is self.rows:", "store/test_store_contract.py::test_a_cancelled_caller_still_hears_that_its_change_was_refused"),
    Fault("a change is taken back though the journal kept it while its caller was cancelled", "toolgrove/call/audit.py", "            self._settled(call, effects)\n            raise", "            raise", "store/test_reopening.py::test_a_call_cancelled_while_it_is_written_is_done_once_and_recorded_once"),
    Fault("a write without a version is let through", "toolgrove/tools/source.py", "if declaration.mutates or token is not None:", "if token is not None:", "grove/test_core_scenarios.py::test_a_missing_or_stale_version_is_a_conflict_with_the_latest_and_what_changed"),
    Fault("an old audit record goes before its copy is written", "toolgrove/store/journal/tables/entries.py", "min(place.number - 1, self.copies.least(place.number))", "place.number - 1", "store/test_retention.py::test_a_record_waits_for_its_copy"),
    Fault("an old audit record goes though the archive did not take it", "toolgrove/store/journal/tables/audit_retention.py", "            self._told = True\n            return False", "            self._told = True\n            return True", "store/test_retention.py::test_a_record_stays_until_the_archive_can_take_it"),
    Fault("one record from a clock that was set back takes others along", "toolgrove/store/journal/tables/audit_retention.py", "if old > young or not young:", "if old or not young:", "store/test_retention.py::test_one_record_from_a_clock_that_was_set_back_takes_no_others_along"),
    Fault("a store is restored while a process uses it", "toolgrove/store/backup/restoring.py", "with _owned(places.store), _opened", "with _opened", "cli/test_cli_backup.py::test_a_backup_is_made_while_agents_write_and_put_back_once_they_stopped"),
    Fault("the beginning of the audit log can be cut off unseen", "toolgrove/store/journal/tables/audit_queries.py", "ChainCheck(seals, floor=floor", "ChainCheck(seals, floor=None", "store/test_retention.py::test_a_beginning_that_somebody_cut_off_is_noticed"),
    Fault("the end of the audit log can be cut off unseen", "toolgrove/store/audit/proof.py", "if place.number > end.number:", "if place.number < 0:", "store/test_reopening.py::test_the_audit_chain_goes_on_and_shows_what_was_altered_or_cut"),
    Fault("a call leaves before its record is kept", "toolgrove/call/begun.py", "        await self._begin(call)\n", "", "faults/test_cut_off.py::test_a_call_that_a_kill_cut_off_is_unknown_and_its_first_repetition_is_stopped"),
    Fault("a call that was cut off runs again at once", "toolgrove/call/cut_off.py", "if not doubt.is_told:", "if doubt.is_told is None:", "faults/test_cut_off.py::test_a_call_that_a_kill_cut_off_is_unknown_and_its_first_repetition_is_stopped"),
    Fault("who has no key writes an audit log anew", "toolgrove/store/audit/proof.py", "not self._seals.holds(text, seal):", "not seal:", "store/test_forged_logs.py::test_nobody_without_the_key_makes_a_log_that_is_proved"),
    Fault("the row that says where a log ends can be forged", "toolgrove/store/journal/tables/audit_queries.py", "if proof.breach is None and is_ours and is_forged:", "if proof.breach is None and not is_ours and is_forged:", "store/test_seals.py::test_the_row_that_says_where_a_log_ends_is_sealed_itself"),
    Fault("a log that no seal covers passes for proved", "toolgrove/store/audit/proof.py", " and not self._doubts,", ",", "store/test_forged_logs.py::test_whoever_has_the_public_key_can_check_a_copy_and_whoever_has_none_proves_nothing"),
    Fault("a log that another key sealed goes on without a word", "toolgrove/store/journal/tables/going_on.py", "        if not change_key:", "        if change_key is None:", "store/test_seals.py::test_a_log_of_another_key_is_refused_until_somebody_lets_it_go_on_with_a_marked_change"),
    Fault("a head that somebody wrote into the database is signed as ours", "toolgrove/store/journal/tables/entries.py", "if self._notary is None or self.is_sealed(head):", "if self._notary is None or head:", "cli/test_cli_audit_keys.py::test_what_somebody_writes_into_a_database_in_use_is_not_signed_as_ours"),
    Fault("a backup older than the copy is put to use without a word", "toolgrove/store/journal/tables/going_on.py", "    passed = [*entries.copies.ends, ", "    passed = [", "store/test_seals.py::test_a_backup_that_is_older_than_the_copy_is_told_and_the_copy_goes_on_with_a_marked_break"),
    Fault("a row that was changed by hand is believed", "toolgrove/store/journal/tables/encoding.py", "if [zlib.crc32(body.encode()) for body in bodies] != [crc for _, crc in rows]:", "if not bodies:", "store/test_faults.py::test_a_row_that_was_changed_by_hand_is_noticed"),
    Fault("two processes write one store", "toolgrove/store/journal/sqlite/owner.py", '"BEGIN EXCLUSIVE"', '"BEGIN"', "store/test_faults.py::test_one_process_writes_while_others_may_read"),
    Fault("a read of the state file waits for a writer", "toolgrove/store/state/sqlite/file.py", "with self._reading, _as_unavailable(self.path):", "with self._lock, _as_unavailable(self.path):", "pool/test_pins.py::test_who_reads_does_not_wait_for_who_writes"),
    Fault("a rejection is told again and again", "toolgrove/call/inbox.py", 'if one.state == "rejected" and one.closed_at is None', 'if one.state == "rejected"', "pool/test_approvals.py::test_a_rejection_is_told_once"),
    Fault("an approval serves twice", "toolgrove/call/inbox.py", "            table.put(claimed)\n            return claimed", "            return claimed", "call/test_approval.py::test_an_approved_call_runs_once"),
    Fault("a source that was replaced runs on", "toolgrove/pool/pool.py", "self._scopes.pop(name).cancel()", "self._scopes.pop(name)", "pool/test_pool.py::test_a_source_that_is_replaced_before_it_began_never_runs_on"),
    Fault("a secret in base64 gets out", "toolgrove/pool/secret_encodings.py", "spelt.update((encoded, encoded.translate(_URL_SAFE)))", "spelt.update((encoded, encoded)[:0])", "pool/test_secrets.py::test_a_value_is_scrubbed_in_every_spelling"),
    Fault("a foreign tool about which nobody answerable spoke counts as reading", "toolgrove/pool/mcp/effect_policy.py", "return not (self._trusts_hints and honest)", "return not (self._trusts_hints and honest) and bool(hints)", "faults/test_foreign_effects.py::test_a_foreign_tool_changes_something_until_the_operator_says_otherwise"),
    Fault("a definition that changed is offered as it is", "toolgrove/pool/mcp/catalog.py", 'if standing != "ready":', 'if standing == "pending":', "faults/test_metadata.py::test_a_definition_that_changes_is_quarantined_until_somebody_looked"),
    Fault("an answer is held against another definition than the agent's", "toolgrove/pool/mcp/source.py", "check(answer, entry.valid)", "check(answer, self._catalog.entry(entry.tool).valid)", "faults/test_metadata.py::test_a_call_that_is_under_way_when_its_tool_changes_keeps_its_answer"),
    Fault("a private address is reached", "toolgrove/pool/host.py", '(("public", "private") if private else ("public",))', '("public", "private")', "pool/http/test_http_addresses.py::test_a_name_that_leads_inside_is_refused_before_anything_is_sent"),
    Fault("the state folder shows in a sandbox", "toolgrove/pool/mcp/sandbox.py", "        *_covered(state, (*_SYSTEM, *shown)),\n", "", "pool/mcp/test_mcp_sandbox.py::test_paths_are_read_only_and_never_show_the_state"),
    Fault("an approval is good for whatever the call would change by now", "toolgrove/call/approval.py", "footprint_hash=foreseen.footprint,", "", "call/test_approved_effect.py::test_an_approval_to_remove_an_empty_node_does_not_remove_what_was_moved_into_it"),
    Fault("a name in an approval hides what it is", "toolgrove/tree/impact.py", "one_line(cut)", "cut", "call/test_approved_effect.py::test_a_name_can_neither_hide_nor_end_its_quotes_nor_fill_the_page"),
    Fault("an approval is good for any arguments", "toolgrove/call/approval.py", "arguments_hash=_digest(text),", 'arguments_hash="",', "call/test_approval.py::test_other_arguments_and_other_agents_have_to_ask_themselves"),
    Fault("a reader calls what changes something", "toolgrove/call/role.py", "if call.granted.mutates and not call.caller.may_write:", "if call.granted.mutates and call.caller.read_only:", "call/test_call_gate.py::test_refusals_come_in_the_order_of_the_gate"),
    Fault("the second of two credentials is not looked at", "toolgrove/web/identity.py", "if len(given) != 1:", "if not given:", "web/test_web_identity.py::test_two_tokens_are_none"),
    Fault("an agent above does not have to be asked about", "toolgrove/pool/resolve.py", "    for above in within:\n        found", "    for above in within[:0]:\n        found", "runners/test_obligations.py::test_a_call_waits_for_a_person_if_any_ancestors_would"),
    Fault("a sub-agent spends nothing of the rate of those above it", "toolgrove/call/rate_limit.py", "dict.fromkeys(caller.chain)", "dict.fromkeys(caller.chain[-1:])", "runners/test_delegation_law.py::test_what_comes_of_a_chain_of_spawns_is_the_intersection_of_all_its_rights"),
    Fault("a delegated run takes back what the agent's own client did", "toolgrove/tree/workspace.py", "        if not caller.is_delegated:\n            return None\n        return self._delegated.get", "        if caller.session:\n            return None\n        return self._delegated.get", "runners/test_obligations.py::test_a_delegated_run_takes_back_its_own_changes_only"),
    Fault("the agents of one spawn share a session", "toolgrove/grove.py", 'session = f"{call.caller.session}/{call.id}.{number}"', 'session = f"{call.caller.session}/{call.id}"', "runners/test_obligations.py::test_the_sessions_of_one_spawn_are_counted"),
    Fault("what is decided about a sub-agent's call does not say in whose run", "toolgrove/call/inbox.py", '"run_id": asked.run_id,', '"run_id": approval.id,', "runners/test_obligations.py::test_all_that_happens_to_an_approval_says_on_whose_behalf"),
    Fault("a definition that speaks of another's tool is taken without a person", "toolgrove/pool/pool.py", "suspicious = await self._suspicious()", "suspicious = set[str]()", "faults/test_first_contact.py::test_what_speaks_of_anothers_tool_waits_even_at_first_contact"),
    Fault("a standing approval serves whoever's behalf a call is on", "toolgrove/call/inbox.py", "        request.tool,\n        request.definition_hash,\n        request.chain,\n", "        request.tool,\n        request.definition_hash,\n        standing.chain,\n", "pool/test_approvals.py::test_a_standing_approval_is_for_one_tool_as_it_was_and_one_chain"),
    Fault("an approval that a crash left behind is not on record", "toolgrove/call/inbox.py", '        table.note(_deed("abandoned", abandoned, "start-up", now, **became))\n', "", "store/test_approval_crashes.py::test_an_approval_that_was_claimed_for_nothing_is_good_again_and_that_is_told"),
    Fault("an agent calls as another one", "toolgrove/web/identity.py", "return self.is_operator or self.name == agent", "return self.is_operator or bool(agent)", "web/test_web_identity.py::test_another_agents_token_finds_no_agent"),
    Fault("in node concurrency a version from before the caller's own view is accepted", "toolgrove/tree/workspace.py", "if footprint.view and view_changed:", "if footprint.view and not seq:", "grove/test_versions_and_roots.py::test_in_node_concurrency_a_callers_own_view_makes_stale_only_what_rests_on_it"),
    Fault("a node that was removed stays in the store", "toolgrove/store/journal/tables/entries.py", "    if gone:\n", "    if not gone:\n", "store/test_reopening.py::test_a_node_that_was_removed_stays_removed"),
    Fault("a server may send as many bytes as it likes", "toolgrove/pool/mcp/inbound_budget.py", "if not (self._messages.take(messages) and self._bytes.take(size)):", "if not self._messages.take(messages):", "pool/mcp/test_jsonrpc.py::test_a_server_that_says_little_but_long_things_is_cut_off_as_well"),
    Fault("a request's target may name a host of its own", "mcp_serve/uvicorn_internals.py", 'if not self.url.startswith(b"/"):', "if not self.url:", "e2e/test_edge.py::test_a_target_that_names_a_host_of_its_own_is_refused"),
    Fault("a copy of a client's settings goes through a planted link", "toolgrove/cli/install/settings.py", 'with open(copy, "x",', 'with open(copy, "w",', "cli/test_cli_install.py::test_earlier_copies_stay_and_a_planted_one_is_not_written_through"),
    Fault("the sessions of one token are without end", "toolgrove/web/session_room.py", "while self._of[user] > OF_ONE or", "while", "web/test_web_sessions.py::test_one_session_too_many_ends_the_longest_idle_one_of_the_same_token"),
    Fault("a failed reload is not rolled back", "toolgrove/reload.py", "if await _put_back(project, before):", "if before:", "grove/test_reload.py::test_a_change_that_fails_is_taken_back_whole"),
    Fault("a reload that narrows the scope of a secret changes nothing", "toolgrove/grove.py", "        self.secrets.rescope(config.secrets)\n", "", "pool/http/test_http_through_grove.py::test_a_reload_that_narrows_the_scope_of_a_secret_takes_it_away"),
    Fault("a call is answered in the event loop of another", "toolgrove/store/journal/tables/writer.py", "answers.setdefault(ticket.loop, [])", "answers.setdefault(tickets[-1].loop, [])", "store/test_faults.py::test_every_call_is_answered_in_its_own_loop_though_another_of_its_group_has_ended"),
    Fault("what a schema marks as sensitive is recorded", "toolgrove/call/bodies.py", "arguments, taken = sensitive.hidden(arguments)", "taken = sensitive.hidden(arguments)[1]", "call/test_record.py::test_what_a_schema_marks_as_sensitive_is_in_no_record"),
    Fault("a flood of wrong tokens fills the audit log", "toolgrove/web/refusals.py", "        if now - burst.since >= MINUTE:\n            await", "        if now >= burst.since:\n            await", "web/test_web_door.py::test_a_flood_of_wrong_tokens_costs_one_record_a_minute_and_one_line_and_is_counted"),
    Fault("a store that is gone passes for whole by its copy", "toolgrove/cli/audit_log.py", "return proof if proof.breach is not None else", "return proof if proof.breach is None else", "cli/test_cli_audit.py::test_a_store_that_is_gone_is_told_though_its_copy_is_whole"),
    Fault("the body of a stranger is read", "toolgrove/web/app.py", "                known,  # before the body is read: strangers must cost nothing\n                Middleware(Lane, find=agents.line),\n                Middleware(BodyLimit),\n                Middleware(ClearJson),\n", "                Middleware(BodyLimit),\n                Middleware(ClearJson),\n                known,\n                Middleware(Lane, find=agents.line),\n", "web/test_web_strangers.py::test_a_stranger_is_refused_before_the_body_is_read"),
    Fault("an agent takes every place of a server", "toolgrove/pool/fair_shares.py", "return self._held[agent] < GREED * self._free", "return self._free > 0", "faults/test_shares.py::test_an_agent_that_floods_a_server_is_told_to_wait_and_the_others_are_served"),
    Fault("a thread that a module leaves behind counts for nobody", "toolgrove/pool/module_threads.py", "self._place.lose()", "self._place.give_back()", "faults/test_shares.py::test_threads_that_calls_leave_behind_count_for_their_agent_and_for_nobody_else"),
    Fault("what one agent lets time out stops everybody", "toolgrove/pool/mcp/source.py", "self._breakers.timed_out(share_of(call))", "self._breakers.failed()", "faults/test_shares.py::test_the_calls_that_one_agent_lets_time_out_stop_that_agent_alone"),
)  # fmt: skip


def runs(tests: Iterable[str], source: Path) -> subprocess.CompletedProcess[str]:
    """Run tests against a copy of the source."""
    options = ["-x", "-q", "-rf", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-profile=no-shrink"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(f"tests/{test}" for test in tests)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=HUNG,
        check=False,
    )


@contextmanager
def copied() -> Iterator[Path]:
    """The source, where it may be broken."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SOURCE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        yield Path(folder)


def notices(fault: Fault) -> bool:
    """Whether its test fails, and not the way there: an import or a fixture that breaks notices nothing."""
    with copied() as source:
        target = source / fault.file
        target.write_text(target.read_text().replace(fault.old, fault.new))
        try:
            done = runs([fault.test], source)
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 1 and f"\nFAILED tests/{fault.test}" in done.stdout


def baseline(faults: Iterable[Fault]) -> str | None:
    """What the named tests say of the source as it is; None if they all pass."""
    with copied() as source:
        done = runs(sorted({fault.test for fault in faults}), source)
    return None if done.returncode == 0 else done.stdout + done.stderr


def record(found: dict[Fault, bool]) -> None:
    """Write the page; a row that was not run now stands only if it is still about the same file and test."""
    before = PAGE.read_text().splitlines() if PAGE.exists() else []
    rows = []
    for fault in FAULTS:
        known = [noticed for noticed in (True, False) if fault.row(noticed) in before]
        rows += [fault.row(noticed) for noticed in ([found[fault]] if fault in found else known)]
    noticed = sum(row.endswith("| yes |") for row in rows)
    PAGE.write_text(HEAD.format(noticed=noticed, all=len(rows)) + "\n".join(rows) + "\n")


def unfit() -> list[str]:
    """What is wrong with the list of faults, before any of them is run."""
    return [f"{fault.what}: {reason}" for fault in FAULTS if (reason := fault.misfit())]


def unproven() -> list[str]:
    """The faults of which the page does not say that their test notices them."""
    rows = PAGE.read_text().splitlines()
    stale = set(re.findall(r"^\| (?!fault)(.+?) \| `", "\n".join(rows), re.MULTILINE)) - {one.what for one in FAULTS}
    return [f"{what}: is on the page and no longer a fault" for what in sorted(stale)] + [
        f"{fault.what}: run python tools/mutate.py {fault.file}" for fault in FAULTS if fault.row(True) not in rows
    ]


def main() -> int:
    words = sys.argv[1:]
    wrong = unfit() + (unproven() if words == ["--check"] else [])
    if wrong:
        print("\n".join(wrong))
        return 1
    if words == ["--check"]:
        return 0
    chosen = [fault for fault in FAULTS if not words or any(word in fault.what or word in fault.file for word in words)]
    if not chosen:
        print(f"no fault's description or file holds any of: {', '.join(words)}")
        return 1
    failing = baseline(chosen)
    if failing is not None:
        print(f"the tests must pass before anything is broken:\n{failing}")
        return 1
    found: dict[Fault, bool] = {}
    for fault in chosen:
        found[fault] = notices(fault)
        print(f"{'noticed' if found[fault] else 'MISSED'}: {fault.what} ({fault.test})", flush=True)
    record(found)
    return 0 if all(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

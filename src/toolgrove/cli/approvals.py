"""`toolgrove approvals`: the calls that wait for a person."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import anyio
from rich.table import Table

from toolgrove.cli.moment import moment
from toolgrove.cli.person import person
from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line, table, visible_json
from toolgrove.cli.shelf import shelf
from toolgrove.store.approvals import Approval

_STYLES = {"pending": "yellow", "approved": "green", "used": "dim", "rejected": "red", "expired": "dim"}


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command and its verbs."""
    parser = commands.add_parser(
        "approvals",
        parents=[shared],
        help="see, approve or reject calls that wait for a person",
        description="Calls that wait for a person. An approval holds for that agent, those arguments and that "
        "definition of the tool, once.",
    )
    parser.set_defaults(run=_list, all=False)
    verbs = parser.add_subparsers(metavar="VERB")
    listing = verbs.add_parser("list", parents=[shared], help="list what waits (what plain 'approvals' does)")
    listing.add_argument("--all", action="store_true", help="also what was decided, used or has expired")
    listing.set_defaults(run=_list)
    show = verbs.add_parser("show", parents=[shared], help="show one with its arguments and definition")
    show.add_argument("id", metavar="ID")
    show.set_defaults(run=_show)
    for verb, approve in (("approve", True), ("reject", False)):
        decision = verbs.add_parser(verb, parents=[shared], help=f"{verb} a call that waits")
        decision.add_argument("id", metavar="ID")
        decision.add_argument("--reason", default="", help="what the agent is told")
        decision.set_defaults(run=partial(_decide, approve=approve))


def _list(chosen: argparse.Namespace, screen: Screen) -> int:
    with shelf(load(chosen)) as kept:
        found = anyio.run(kept.inbox.list, None if chosen.all else "pending")
    shown = table("ID", "STATE", "AGENT", "TOOL", "RULE", "ASKED", "EXPIRES", whole="ID")
    for approval in found:
        request = approval.request
        shown.add_row(
            line(approval.id),
            line(approval.state, _STYLES[approval.state]),
            *map(line, (request.agent, request.tool, request.rule)),
            moment(approval.requested_at),
            moment(approval.expires_at),
        )
    screen.answer([approval.to_json() for approval in found], shown if found else line("Nothing waits for approval."))
    return 0


def _show(chosen: argparse.Namespace, screen: Screen) -> int:
    with shelf(load(chosen)) as kept:
        approval = anyio.run(kept.inbox.get, chosen.id)
    screen.answer(approval.to_json(), _details(approval))
    return 0


def _decide(chosen: argparse.Namespace, screen: Screen, *, approve: bool) -> int:
    with shelf(load(chosen)) as kept:
        decide = partial(kept.inbox.decide, chosen.id, approve=approve, by=person(), reason=chosen.reason)
        approval = anyio.run(decide)
    request = approval.request
    if approve:
        told = f"Approved: {request.agent} may call {request.tool} with these arguments, once."
    else:
        told = f"Rejected: {request.agent} will be told that it may not call {request.tool}."
    screen.answer(approval.to_json(), line(told, "green"))
    return 0


def _details(approval: Approval) -> Table:
    request = approval.request
    shown = table()
    shown.add_column(style="bold")
    shown.add_column(overflow="fold")
    facts = {
        "id": approval.id,
        "state": approval.state,
        "agent": request.agent,
        "tool": request.tool,
        "rule": request.rule,
        "asked": moment(approval.requested_at).plain,
        "expires": moment(approval.expires_at).plain,
        "decided by": approval.decided_by,
        "reason": approval.reason,
        "sends": "" if request.sends is None else f"{request.sends['method']} {request.sends['url']}",
        "arguments": visible_json(dict(request.arguments)),
        "definition": visible_json(dict(request.definition)),
    }
    for name, value in facts.items():
        if value:
            shown.add_row(name, line(value))
    return shown

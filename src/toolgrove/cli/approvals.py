"""`toolgrove approvals`: the calls that wait for a person."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any, get_args

import anyio
from rich.table import Table

from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line, table
from toolgrove.cli.text import local_time, signature
from toolgrove.notation.unseen_text import visible_json
from toolgrove.project_state import ProjectState
from toolgrove.store.state import Approval, Lasting
from toolgrove.web import schemas

_STYLES = {
    "pending": "yellow",
    "approved": "green",
    "claimed": "green",
    "used": "dim",
    "unknown": "red",
    "rejected": "red",
    "revoked": "dim",
    "expired": "dim",
}


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "approvals",
        parents=[shared],
        description="Calls that wait for a person. An approval holds for that agent, those arguments, that definition "
        "of the tool and what the call would change, once.",
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
        if approve:
            decision.add_argument(
                "--for",
                dest="lasts",
                choices=get_args(Lasting),
                help="approve for so long every call of this tool by this agent, whatever its arguments",
            )
        decision.set_defaults(run=partial(_decide, approve=approve), lasts=None)
    revoke = verbs.add_parser("revoke", parents=[shared], help="take back an approval that is not used up")
    revoke.add_argument("id", metavar="ID")
    revoke.set_defaults(run=_revoke)


def _list(chosen: argparse.Namespace, screen: Screen) -> int:
    with ProjectState.of(load(chosen)) as kept:
        found = anyio.run(kept.approvals.list, None if chosen.all else "pending")
    shown = table("ID", "STATE", "AGENT", "TOOL", "EFFECT", "RULE", "ASKED", "EXPIRES", whole="ID")
    for approval in found:
        request = approval.request
        shown.add_row(
            line(approval.id),
            line(approval.state, _STYLES[approval.state]),
            *map(line, (request.agent, request.tool, request.effect, request.rule)),
            local_time(approval.requested_at),
            local_time(approval.expires_at),
        )
    screen.answer(
        [schemas.Approval.of(approval).to_json() for approval in found],
        shown if found else line("Nothing waits for approval."),
    )
    return 0


def _show(chosen: argparse.Namespace, screen: Screen) -> int:
    with ProjectState.of(load(chosen)) as kept:
        approval = anyio.run(kept.approvals.get, chosen.id)
    screen.answer(schemas.Approval.of(approval).to_json(), _details(approval))
    return 0


def _decide(chosen: argparse.Namespace, screen: Screen, *, approve: bool) -> int:
    with ProjectState.of(load(chosen)) as kept:
        said = {"approve": approve, "by": signature(), "reason": chosen.reason, "lasts": chosen.lasts}
        approval = anyio.run(partial(kept.approvals.decide, chosen.id, **said))
    request = approval.request
    if approval.lasts is not None:
        until = local_time(approval.expires_at).plain
        message = f"Approved: {request.agent} may call {request.tool} with any arguments until {until}."
    elif approve:
        message = f"Approved: {request.agent} may call {request.tool} with these arguments, once."
    else:
        message = f"Rejected: {request.agent} will be told that it may not call {request.tool}."
    screen.answer(schemas.Approval.of(approval).to_json(), line(message, "green"))
    return 0


def _revoke(chosen: argparse.Namespace, screen: Screen) -> int:
    with ProjectState.of(load(chosen)) as kept:
        approval = anyio.run(partial(kept.approvals.revoke, chosen.id, by=signature()))
    message = f"Revoked: {approval.request.agent} must ask again before it calls {approval.request.tool}."
    screen.answer(schemas.Approval.of(approval).to_json(), line(message, "green"))
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
        "on behalf of": " > ".join(request.chain[:-1]),
        "tool": request.tool,
        "effect": request.effect,
        "replaces": f"{approval.replaces}, which would have changed something else" if approval.replaces else "",
        "earlier": f"the same call, {request.earlier}" if request.earlier is not None else "",
        "rule": request.rule,
        "asked": local_time(approval.requested_at).plain,
        "expires": local_time(approval.expires_at).plain,
        "decided by": approval.decided_by,
        "reason": approval.reason,
        "for": "" if approval.lasts is None else f"{approval.lasts}, any arguments; used {approval.uses} times",
        "sends": "" if request.sends is None else f"{request.sends['method']} {request.sends['url']}",
        "arguments": visible_json(dict(request.arguments)),
        "definition": visible_json(dict(request.definition)),
    }
    for name, value in facts.items():
        if value:
            shown.add_row(name, line(value))
    return shown

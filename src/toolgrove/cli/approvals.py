"""`toolgrove approvals`: the calls that wait for a person."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import anyio
from rich.console import RenderableType
from rich.table import Table

from toolgrove.cli.desk.opening import asked, desk, kept
from toolgrove.cli.screen import Screen, line, table
from toolgrove.cli.text import local_time, signature
from toolgrove.notation.unseen_text import visible_json

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

LASTING = ("15m", "1h", "8h")
"""For how long a standing approval can hold; known here so that the command starts quickly."""


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "approvals",
        parents=[shared],
        description="Calls that wait for a person. An approval holds for that agent, those arguments, that definition "
        "of the tool and what the call would change, once.",
    )
    listed = argparse.ArgumentParser(add_help=False)
    listed.add_argument("--all", action="store_true", help="also what was decided, used or has expired")
    listed.add_argument("--watch", action="store_true", help="stay, and show each call that waits as it comes")
    verbs = parser.add_subparsers(metavar="VERB")
    listing = verbs.add_parser("list", parents=[shared, listed], help="list what waits (what plain 'approvals' does)")
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
                choices=LASTING,
                help="approve for so long every call of this tool by this agent, whatever its arguments",
            )
        decision.set_defaults(run=partial(_decide, approve=approve), lasts=None)
    revoke = verbs.add_parser("revoke", parents=[shared], help="take back an approval that is not used up")
    revoke.add_argument("id", metavar="ID")
    revoke.set_defaults(run=_revoke)


def _list(chosen: argparse.Namespace, screen: Screen) -> int:
    if chosen.watch:
        anyio.run(_watch, chosen, screen)
        return 0
    found = asked(chosen, screen, "approvals", state=None if chosen.all else "pending")
    shown = table("ID", "STATE", "AGENT", "TOOL", "EFFECT", "RULE", "ASKED", "EXPIRES", whole="ID")
    for approval in found:
        shown.add_row(
            line(approval["id"]),
            line(approval["state"], _STYLES[approval["state"]]),
            *map(line, (_asker(approval), approval["tool"], approval["effect"] or "", approval["rule"])),
            local_time(approval["requestedAt"]),
            local_time(approval["expiresAt"]),
        )
    screen.answer(found, shown if found else line("Nothing to approve."))
    return 0


async def _watch(chosen: argparse.Namespace, screen: Screen) -> None:
    """Print each call that waits, and what becomes of it, until Ctrl+C."""
    if not screen.as_json:
        screen.say("Waiting for calls that need approval. Ctrl+C stops.", "dim")
    async with desk(chosen, screen, kept()) as project:
        async for approval in project.follow("approvals.watch"):
            screen.event(approval, *_news(approval))


def _news(approval: Mapping[str, Any]) -> Iterator[RenderableType]:
    """What a person needs to know of an approval that is new, or has changed."""
    what = f"{_asker(approval)} {approval['tool']}"
    yield line(f"{approval['state']}  {approval['id']}  {what}", _STYLES[approval["state"]])
    if approval["state"] == "pending":
        if approval["effect"]:
            yield line(f"  {approval['effect']}")
        yield line(f"  {approval['argumentsText']}", "dim")
        yield line(f"  toolgrove approvals approve {approval['id']}")
    elif approval["decidedBy"]:
        yield line(f"  by {approval['decidedBy']} {approval['reason'] or ''}".rstrip(), "dim")


def _asker(approval: Mapping[str, Any]) -> str:
    """The agent that asks, or who acts as it."""
    agent, by = approval["agent"], approval["askedBy"]
    return agent if by is None else f"{by} as {agent}"


def _show(chosen: argparse.Namespace, screen: Screen) -> int:
    approval = asked(chosen, screen, "approval", id=chosen.id)
    screen.answer(approval, _details(approval))
    return 0


def _decide(chosen: argparse.Namespace, screen: Screen, *, approve: bool) -> int:
    said = {"approve": approve, "by": signature(), "reason": chosen.reason, "lasts": chosen.lasts}
    approval = asked(chosen, screen, "decide", id=chosen.id, **said)
    agent, tool = approval["agent"], approval["tool"]
    if approval["for"] is not None:
        until = local_time(approval["expiresAt"]).plain
        message = f"Approved: {agent} may call {tool} with any arguments until {until}."
    elif approve:
        message = f"Approved: {agent} may call {tool} with these arguments, once."
    else:
        message = f"Rejected: {agent} will be told that it may not call {tool}."
    screen.answer(approval, line(message, "green"))
    return 0


def _revoke(chosen: argparse.Namespace, screen: Screen) -> int:
    approval = asked(chosen, screen, "revoke", id=chosen.id, by=signature())
    message = f"Revoked: {approval['agent']} must ask again before it calls {approval['tool']}."
    screen.answer(approval, line(message, "green"))
    return 0


def _details(approval: Mapping[str, Any]) -> Table:
    shown = table()
    shown.add_column(style="bold")
    shown.add_column(overflow="fold")
    replaces, earlier, sends, lasts = (approval[key] for key in ("replaces", "earlier", "sends", "for"))
    facts = {
        "id": approval["id"],
        "state": approval["state"],
        "agent": approval["agent"],
        "asked by": approval["askedBy"],
        "on behalf of": " > ".join(approval["chain"][:-1]),
        "tool": approval["tool"],
        "effect": approval["effect"],
        "replaces": f"{replaces}, which would have changed something else" if replaces else "",
        "earlier": f"the same call, {earlier['callId']}, begun {earlier['begunAt']}" if earlier else "",
        "rule": approval["rule"],
        "asked": local_time(approval["requestedAt"]).plain,
        "expires": local_time(approval["expiresAt"]).plain,
        "decided by": approval["decidedBy"],
        "reason": approval["reason"],
        "for": "" if lasts is None else f"{lasts}, any arguments; used {approval['uses']} times",
        "sends": "" if sends is None else f"{sends['method']} {sends['url']}",
        "arguments": approval["argumentsText"],
        "definition": visible_json(approval["definition"]),
    }
    for name, value in facts.items():
        if value:
            shown.add_row(name, line(value))
    return shown

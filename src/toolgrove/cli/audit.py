"""`toolgrove audit`: what agents did, and whether the log still says so."""

from __future__ import annotations

import argparse
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import anyio
from rich.text import Text

from toolgrove.cli.moment import moment
from toolgrove.cli.number import whole
from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line, table
from toolgrove.config import Config
from toolgrove.store.audit import Breach, Outcome
from toolgrove.store.audit_export import as_csv, as_lines
from toolgrove.store.audit_file import AuditFile
from toolgrove.store.audit_log import AuditLog, AuditQuery
from toolgrove.store.sqlite.audit_log import SqliteAuditLog

_STYLES = {"success": "green", "failure": "red", "refused": "yellow", "cancelled": "dim", "replayed": "cyan"}
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_PAGE = 1_000
_SHOWN = 50
_count = whole("a number of records, from 1 on", low=1)


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command and its verbs."""
    parser = commands.add_parser(
        "audit",
        parents=[shared],
        help="see what agents did, verify and export the log",
        description="The audit log: one record per call, refusals too, each bound to the one before it.",
    )
    parser.set_defaults(run=_list, **dict.fromkeys(("agent", "tool", "outcome", "since")), limit=_SHOWN)
    filters = _filters()
    verbs = parser.add_subparsers(metavar="VERB")
    listing = verbs.add_parser(
        "list", parents=[shared, filters], help="the latest calls, newest last (what plain 'audit' does)"
    )
    listing.add_argument("--limit", type=_count, default=_SHOWN, metavar="N", help=f"at most so many ({_SHOWN})")
    listing.set_defaults(run=_list)
    verify = verbs.add_parser("verify", parents=[shared], help="prove that no record was altered, removed or reordered")
    verify.set_defaults(run=_verify)
    export = verbs.add_parser(
        "export", parents=[shared, filters], help="print records for other programs, oldest first"
    )
    export.add_argument("--format", choices=("jsonl", "csv"), default="jsonl", help="JSON Lines or CSV (jsonl)")
    export.add_argument("--limit", type=_count, metavar="N", help="at most so many (all)")
    export.set_defaults(run=_export)


def _filters() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--agent", metavar="AGENT", help="only calls of this agent")
    parser.add_argument("--tool", metavar="TOOL", help="only calls of this tool")
    parser.add_argument("--outcome", choices=get_args(Outcome), help="only calls that ended so")
    parser.add_argument(
        "--since",
        type=_since,
        metavar="WHEN",
        help="only calls since then: 2026-01-31, 2026-01-31T12:00, 30m, 2h or 7d",
    )
    return parser


def _since(text: str) -> str:
    """A moment as the records carry it; without a zone it is a time of this machine."""
    ago = re.fullmatch(r"(\d{1,6})([smhd])", text, re.ASCII)
    try:
        if ago is not None:
            at = datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        else:
            at = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time such as 2026-01-31T12:00, or a span such as 2h"
        ) from None
    return at.isoformat(timespec="milliseconds")


def _query(chosen: argparse.Namespace) -> AuditQuery:
    return AuditQuery(agent=chosen.agent, tool=chosen.tool, outcome=chosen.outcome, since=chosen.since)


def _log(config: Config) -> AuditLog:
    """The records that outlive a process: the store's, or those in a file."""
    store, file = config.workspace.store_path, config.workspace.audit_log
    if store is None and file is None:
        raise ValueError(
            "this project's audit records end with its process; keep them with workspace.store: sqlite:PATH, "
            "or name a file in workspace.auditLog"
        )
    for place, log in ((store, SqliteAuditLog), (file, AuditFile)):
        if place is not None and place.exists():
            return log(place)
    raise ValueError(f"{store or file} is not there yet: nothing has been called since the project file names it")


def _list(chosen: argparse.Namespace, screen: Screen) -> int:
    query = replace(_query(chosen), newest=True, limit=chosen.limit)
    page = anyio.run(_log(load(chosen)).records, query)
    found = list(reversed(page.records))
    shown = table("NUMBER", "TIME", "AGENT", "TOOL", "OUTCOME", "MS", "ERROR")
    for record in found:
        shown.add_row(*_row(record))
    screen.answer(found, shown if found else line("No call is recorded that fits."))
    return 0


def _row(record: Mapping[str, Any]) -> Iterator[Text]:
    """The cells of a record; one that somebody has altered is shown all the same."""
    yield line(str(record["number"]))
    try:
        yield moment(datetime.fromisoformat(record["timestamp"]).timestamp())
    except (ValueError, OverflowError):
        yield line(record["timestamp"])
    yield from map(line, (record["agent"], record["operation"]))
    yield line(record["outcome"], _STYLES.get(record["outcome"], ""))
    took, error = record.get("durationMs"), record.get("error")
    yield line(f"{took:.1f}" if isinstance(took, int | float) else "")
    yield line(str(error.get("code", "")) if isinstance(error, Mapping) else "")


def _verify(chosen: argparse.Namespace, screen: Screen) -> int:
    log = _log(load(chosen))
    with screen.waiting("Reading the log …"):
        breach, first, last = anyio.run(_proved, log)
    if breach is None:
        extent = f"records {first} to {last} are as they were written" if last else "it is empty"
        told = line(f"The log is whole: {extent}.", "green")
    else:
        told = line(f"The log does not hold at its {_ordinal(breach.number + 1)} record: {breach.problem}.", "red")
    form = None if breach is None else {"number": breach.number, "problem": breach.problem}
    screen.answer({"whole": breach is None, "breach": form, "first": first, "last": last}, told)
    return int(breach is not None)


async def _proved(log: AuditLog) -> tuple[Breach | None, int | None, int | None]:
    """The first breach, and the numbers of the first and last record."""
    oldest = (await log.records(AuditQuery(limit=1))).records
    newest = (await log.records(AuditQuery(limit=1, newest=True))).records
    first, last = (one[0]["number"] if one else None for one in (oldest, newest))
    return await log.verify(), first, last


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _export(chosen: argparse.Namespace, screen: Screen) -> int:
    log = _log(load(chosen))
    anyio.run(_write, log, chosen, screen)
    return 0


async def _write(log: AuditLog, chosen: argparse.Namespace, screen: Screen) -> None:
    """Page by page, so that a long log needs no memory."""
    out = screen.out.file
    is_first = True
    async for records in _pages(log, _query(chosen), chosen.limit):
        text = as_lines(records) if chosen.format == "jsonl" else as_csv(records, heading=is_first)
        out.write(text)
        is_first = False


async def _pages(log: AuditLog, query: AuditQuery, limit: int | None) -> AsyncIterator[list[dict[str, Any]]]:
    left = limit
    while True:
        page = await log.records(replace(query, limit=_PAGE if left is None else min(_PAGE, left)))
        yield list(page.records)
        left = None if left is None else left - len(page.records)
        if page.next is None or left == 0:
            return
        query = replace(query, after=page.next)

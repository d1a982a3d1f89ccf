"""`toolgrove audit`: what agents did, and whether the log still says so."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
from rich.text import Text

from toolgrove.cli.desk.desk import Desk
from toolgrove.cli.desk.opening import asked, config_of, desk, kept
from toolgrove.cli.numbers import whole_number
from toolgrove.cli.screen import Screen, line, table
from toolgrove.cli.text import local_time
from toolgrove.notation.unseen_text import visible_json

_STYLES = {
    "success": "green",
    "failure": "red",
    "refused": "yellow",
    "waiting": "magenta",
    "cancelled": "dim",
    "replayed": "cyan",
    "begun": "dim",
    "unknown": "bold red",
}
OUTCOMES = tuple(_STYLES)
KINDS = (
    "call",
    "late_outcome",
    "approval",
    "pin",
    "token",
    "configuration",
    "sign_in",
    "refused_request",
    "audit",
    "store",
)
"""What the log's own words are; known here so that the command starts quickly."""
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_VERDICTS = {True: 0, False: 1, None: 3}
"""The exit status for what is proved, broken, and not proved."""
_PAGE = 1_000
_SHOWN = 50
_count = whole_number("a number of records, from 1 on", low=1)


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "audit",
        parents=[shared],
        description="The audit log: one record per call, refusals too, and of what people decide and who is refused "
        "at the door. Each is bound to the one before it, and signatures of the project's key cover all of them.",
    )
    filters = _filters()
    verbs = parser.add_subparsers(metavar="VERB")
    listing = verbs.add_parser(
        "list", parents=[shared, filters], help="the latest calls, newest last (what plain 'audit' does)"
    )
    listing.add_argument("--limit", type=_count, default=_SHOWN, metavar="N", help=f"at most so many ({_SHOWN})")
    listing.add_argument("-f", "--follow", action="store_true", help="stay, and show each record as it comes")
    listing.set_defaults(run=_list)
    show = verbs.add_parser("show", parents=[shared], help="show one record whole, with arguments and result")
    show.add_argument("number", type=_count, metavar="NUMBER", help="the record, as 'audit list' numbers them")
    show.set_defaults(run=_show)
    verify = verbs.add_parser(
        "verify",
        parents=[shared],
        help="prove that no record was altered, removed or reordered",
        description="Prove that no record was altered, removed or reordered: of this project, or of a copied log, "
        "which needs no project. Exit status: 0 proved, 1 broken, 3 not proved.",
    )
    verify.add_argument("log", nargs="?", type=Path, metavar="LOG", help="a copied log, archive or export (JSON Lines)")
    verify.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="VALUE|FILE",
        help="the public key that 'audit key' printed, or a file of such lines: check with it alone, not with the "
        "project's own key",
    )
    verify.add_argument(
        "--anchor",
        action="append",
        default=[],
        metavar="VALUE|FILE",
        help="what 'audit anchor' printed earlier, or a file of such lines: the log must hold those records",
    )
    verify.add_argument(
        "--deep",
        action="store_true",
        help="also replay the journal against the stored tree, and compare the tree that each process serves",
    )
    verify.set_defaults(run=_verify)
    key = verbs.add_parser(
        "key", parents=[shared], help="print the public half of the key, with which others can check the log"
    )
    key.add_argument(
        "--change",
        action="store_true",
        help="let a log that another key sealed go on under the key that the project has now; stop the gateway first",
    )
    key.set_defaults(run=_key)
    anchor = verbs.add_parser(
        "anchor", parents=[shared], help="print the end of the log, to be kept elsewhere and verified against"
    )
    anchor.set_defaults(run=_anchor)
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
    parser.add_argument("--outcome", choices=OUTCOMES, help="only calls that ended so")
    parser.add_argument("--kind", choices=KINDS, help="only records of this kind, such as calls or approvals")
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


def _query(chosen: argparse.Namespace) -> dict[str, Any]:
    return {key: getattr(chosen, key) for key in ("agent", "tool", "outcome", "kind", "since")}


def _anchors(text: str) -> list[str]:
    """The anchors that a value, or each line of a file, names."""
    place = import_module("toolgrove.store.audit").Place
    return [str(place.read(each)) for each in _lines(text, "an anchor", "anchors")]


def _lines(text: str, one: str, several: str) -> list[str]:
    """A value, or the lines of the file that it names."""
    try:
        if ":" in text and not Path(text).exists():
            return [text]
        return [each.strip() for each in Path(text).read_text().splitlines() if each.strip()]
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ValueError(f"{text} is neither {one} nor a file of {several}: {why}") from None


def _list(chosen: argparse.Namespace, screen: Screen) -> int:
    return anyio.run(_listed, chosen, screen)


async def _listed(chosen: argparse.Namespace, screen: Screen) -> int:
    async with desk(chosen, screen, kept()) as project:
        query = {**_query(chosen), "newest": True}
        pages = [page async for page in _pages(project, query, chosen.limit)]
        found = [json.loads(each) for page in reversed(pages) for each in reversed(page["lines"])]
        if chosen.follow:
            await _follow(chosen, screen, project, found)
            return 0
    shown = table("NUMBER", "TIME", "AGENT", "TOOL", "OUTCOME", "MS", "ERROR")
    for record in found:
        shown.add_row(*_row(record))
    screen.answer(found, shown if found else line("No call is recorded that fits."))
    return 0


async def _follow(chosen: argparse.Namespace, screen: Screen, project: Desk, found: list[dict[str, Any]]) -> None:
    """The latest records, then each as it comes, until Ctrl+C."""
    for record in found:
        screen.event(record, Text("  ").join(_row(record)))
    after = found[-1]["number"] if found else 0
    async for record in project.follow("audit.follow", after=after, **_query(chosen)):
        screen.event(record, Text("  ").join(_row(record)))


def _show(chosen: argparse.Namespace, screen: Screen) -> int:
    page = asked(chosen, screen, "audit", after=chosen.number - 1, limit=1)
    record = next((one for one in map(json.loads, page["lines"]) if one["number"] == chosen.number), None)
    if record is None:
        raise ValueError(f"there is no record {chosen.number}; 'toolgrove audit list' shows the latest")
    screen.answer(record, line(visible_json(record)))
    return 0


def _row(record: Mapping[str, Any]) -> Iterator[Text]:
    """The cells of a record; one that was altered is shown all the same."""
    yield line(str(record["number"]))
    try:
        yield local_time(datetime.fromisoformat(record["timestamp"]).timestamp())
    except (ValueError, OverflowError):
        yield line(record["timestamp"])
    yield from map(line, (record["agent"] or str(record.get("by") or ""), record["operation"]))
    known_later = " (known later)" if record.get("kind") == "late_outcome" else ""
    yield line(f"{record['outcome']}{known_later}", _STYLES.get(record["outcome"], ""))
    took, error = record.get("durationMs"), record.get("error")
    yield line(f"{took:.1f}" if isinstance(took, int | float) else "")
    yield line(str(error.get("code", "")) if isinstance(error, Mapping) else "")


def _verify(chosen: argparse.Namespace, screen: Screen) -> int:
    anchors = [anchor for given in chosen.anchor for anchor in _anchors(given)]
    keys = [key for given in chosen.key for key in _lines(given, "a public key", "public keys")]
    with screen.waiting("Reading the log …"):
        if keys or chosen.log is not None:
            proof = import_module("toolgrove.cli.audit_log").proved(chosen, anchors, keys)
        else:
            deep = {"deep": True} if chosen.deep else {}  # a gateway of before need not know of it
            proof = asked(chosen, screen, "audit.verify", anchors=anchors, **deep)
    screen.answer(proof, *_findings(proof))
    return _VERDICTS[proof["whole"]]


def _findings(proof: Mapping[str, Any]) -> Iterator[Text]:
    breach = proof["breach"]
    if breach is not None:
        what = f"The copy {breach['file']}" if breach["file"] else "The log"
        yield line(f"{what} does not hold at its {_ordinal(breach['number'] + 1)} record: {breach['problem']}.", "red")
    elif proof["last"] is None:
        yield line("Verified: the log is empty." if proof["sealed"] else "Not proved: the log is empty.")
    else:
        told = f"records {proof['first']} to {proof['last']}"
        if proof["sealed"]:
            yield line(f"Verified: {told}; none has been changed, removed or reordered.", "green")
        else:
            yield line(f"Not proved: {told}. They fit together, which anybody can bring about.", "yellow")
            if proof["sealedFrom"] is not None:
                sealed = f"records {proof['sealedFrom']} to {proof['sealedTo']}"
                yield line(f"Proved are {sealed}, as far as nothing below says otherwise.")
    if proof["removed"]:
        yield line(f"Records up to {proof['removed']} are not in it: retention took them, or an earlier part has them.")
    for one in proof["breaks"]:
        gap = f"it was put back to record {one['after']}, and had held records up to {one['lost']}"
        yield line(f"Record {one['number']} marks a break: {gap}.", "yellow")
    for each in proof["unchecked"]:
        yield line(f"Not checked: {each}.", "yellow")
    if proof.get("tree") is not None:
        yield from _of_the_tree(proof["tree"])


def _of_the_tree(tree: Mapping[str, Any]) -> Iterator[Text]:
    """What a replay of the journal found."""
    for one in tree["differs"]:
        yield line(f"The tree does not fit: {one['what']} {one['name']}: {one['problem']}.", "red")
    if not tree["differs"] and tree["changes"]:
        served = f", and {tree['served']} running compared with them" if tree["served"] else ""
        yield line(f"The stored nodes fit the journal: {tree['changes']} changes replayed{served}.", "green")
    for each in tree["unchecked"]:
        yield line(f"Not checked: {each}.", "yellow")


def _key(chosen: argparse.Namespace, screen: Screen) -> int:
    if chosen.change:
        anyio.run(import_module("toolgrove.cli.audit_log").change_key, config_of(chosen))
    key = asked(chosen, screen, "audit.key")
    screen.answer({"key": key}, line(key), fold=False)
    return 0


def _anchor(chosen: argparse.Namespace, screen: Screen) -> int:
    newest = [json.loads(each) for each in asked(chosen, screen, "audit", limit=1, newest=True)["lines"]]
    log = import_module("toolgrove.store.audit")
    place = log.Place(newest[0]["number"], newest[0]["hash"]) if newest else log.START
    screen.answer({"anchor": str(place)}, line(str(place)), fold=False)
    return 0


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _export(chosen: argparse.Namespace, screen: Screen) -> int:
    anyio.run(_write, chosen, screen)
    return 0


async def _write(chosen: argparse.Namespace, screen: Screen) -> None:
    """Page by page, so that a long log needs no memory."""
    out, log = screen.out.file, import_module("toolgrove.store.audit")
    is_first = True
    async with desk(chosen, screen, kept()) as project:
        async for page in _pages(project, _query(chosen), chosen.limit):
            lines = page["lines"]
            as_csv = chosen.format == "csv"
            out.write(log.as_csv(map(json.loads, lines), heading=is_first) if as_csv else log.as_lines(lines))
            is_first = False
        if chosen.format != "csv" and (key := await project.ask("audit.key", needed=False)):
            out.write(log.as_lines([log.naming(key)]))


async def _pages(project: Desk, query: dict[str, Any], limit: int | None) -> AsyncIterator[dict[str, Any]]:
    left = limit
    while True:
        page = await project.ask("audit", **query, limit=_PAGE if left is None else min(_PAGE, left))
        yield page
        left = None if left is None else left - len(page["lines"])
        if page["next"] is None or left == 0:
            return
        query = {**query, "before" if query.get("newest") else "after": page["next"]}

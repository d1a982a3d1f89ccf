"""Rules and types: validating the tree, linting a payload, and what is registered."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import islice

from toolgrove.errors import Unnamed
from toolgrove.tools.context import ToolContext, place_of, ranks_of
from toolgrove.tools.declaration import READS, Family
from toolgrove.tools.schema import COUNT, ID_LIST, OBJECT, PAGING, STRING, choice, listing, node_id, record, text
from toolgrove.tree.position import position
from toolgrove.tree.rules import Ruleset, Violation
from toolgrove.types import Arguments, Result

family = Family()
_RULESET = text("A ruleset of the configuration; list_rulesets shows them.", minLength=1)
_VIOLATION = record(
    {
        "ruleId": STRING,
        "severity": choice("How bad it is.", "error", "warning"),
        "nodeId": STRING,
        "path": STRING,
        "message": STRING,
    },
    "ruleId",
    "severity",
    "nodeId",
    "path",
    "message",
)


def _ruleset(context: ToolContext, name: str) -> Ruleset:
    known = context.workspace.rulesets
    if name not in known:
        raise Unnamed(kind="ruleset", name=name, known=list(known), where="list_rulesets")
    return known[name]


@family.tool(
    READS,
    arguments={
        "rulesetId": _RULESET,
        "rootNodeId": node_id("Check below this node; the whole tree by default."),
        **PAGING,
    },
    required=("rulesetId",),
    returns={"valid": {"type": "boolean"}, "violations": listing(_VIOLATION), "nextPageToken": STRING},
    optional=("nextPageToken",),
    example={"rulesetId": "houses"},
)
def validate_tree(context: ToolContext, arguments: Arguments) -> Result:
    """Check the tree against a ruleset: required fields, relationships, cardinality, uniqueness, formats."""
    root = context.tree[arguments.get("rootNodeId", context.tree.root.id)]
    ruleset = _ruleset(context, arguments["rulesetId"])
    numbered = context.ordered(arguments, lambda: _numbered(ruleset.validate(root)))
    start, place = 0, context.place(arguments)
    if place is not None:
        mark = (ranks_of(place[0]) or [], place[1])
        start = bisect_right(numbered, mark, key=lambda pair: (position(pair[1].node, root), pair[0]))
    page, more = context.page(
        arguments,
        islice(numbered, start, None),
        lambda pair: [place_of(pair[1].node, root), pair[0]],
        lambda pair: pair[1].to_json(),
    )
    valid = _is_valid(violation for _, violation in numbered)
    return {"valid": valid, "violations": page, **more}


def _numbered(found: Iterable[Violation]) -> list[tuple[int, Violation]]:
    """Violations with their number at the same node, by which a page finds its place again."""
    numbered: list[tuple[int, Violation]] = []
    for violation in found:
        again = bool(numbered) and numbered[-1][1].node is violation.node
        numbered.append((numbered[-1][0] + 1 if again else 0, violation))
    return numbered


def _is_valid(found: Iterable[Violation]) -> bool:
    """Warnings alone break nothing."""
    return all(violation.severity != "error" for violation in found)


@family.tool(
    READS,
    arguments={"nodeId": node_id("The node to lint."), "rulesetId": _RULESET},
    required=("nodeId", "rulesetId"),
    returns={"valid": {"type": "boolean"}, "violations": listing(_VIOLATION)},
    example={"nodeId": "kitchen", "rulesetId": "houses"},
)
def lint_payload(context: ToolContext, arguments: Arguments) -> Result:
    """Check one node's payload against the payload rules of a ruleset."""
    node = context.tree[arguments["nodeId"]]
    found = list(_ruleset(context, arguments["rulesetId"]).lint(node))
    return {"valid": _is_valid(found), "violations": [violation.to_json() for violation in found]}


@family.tool(
    READS,
    arguments={},
    returns={
        "items": listing(
            record(
                {"name": STRING, "kind": STRING, "closed": {"type": "boolean"}, "schema": OBJECT},
                "name",
                "kind",
                "closed",
            )
        ),
        "allowUnknownTypes": {"type": "boolean"},
    },
    example={},
)
def list_payload_types(context: ToolContext, arguments: Arguments) -> Result:
    """List the registered payload types with their schemas, and whether other type names are allowed."""
    items = []
    for known in context.types.registered.values():
        item: Result = {"name": known.name, "kind": known.kind, "closed": known.closed}
        items.append(item if known.schema is None else {**item, "schema": dict(known.schema)})
    return {"items": items, "allowUnknownTypes": context.types.open}


@family.tool(
    READS,
    arguments={"rulesetId": _RULESET},
    required=("rulesetId",),
    returns={"rulesetId": STRING, "rules": listing(OBJECT, "id, severity, types? and one check with its setting.")},
    example={"rulesetId": "houses"},
)
def get_ruleset(context: ToolContext, arguments: Arguments) -> Result:
    """Read the rules of a ruleset: what each one checks, of which types, and how bad a violation is."""
    ruleset = _ruleset(context, arguments["rulesetId"])
    return {"rulesetId": ruleset.id, "rules": [rule.to_json() for rule in ruleset.rules]}


@family.tool(
    READS,
    arguments={},
    returns={
        "items": listing(
            record({"rulesetId": STRING, "ruleCount": COUNT, "ruleIds": ID_LIST}, "rulesetId", "ruleCount", "ruleIds")
        )
    },
    example={},
)
def list_rulesets(context: ToolContext, arguments: Arguments) -> Result:
    """List the rulesets that validate_tree and lint_payload can apply; get_ruleset reads one."""
    return {
        "items": [
            {"rulesetId": known.id, "ruleCount": len(known.rules), "ruleIds": [rule.id for rule in known.rules]}
            for known in context.workspace.rulesets.values()
        ]
    }

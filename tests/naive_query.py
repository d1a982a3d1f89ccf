"""A second, slow opinion on property paths, predicates and the selection DSL."""

from __future__ import annotations

import json
from typing import Any

from lark import Lark, Transformer, v_args
from lark.exceptions import LarkError

from toolgrove.tree.dsl import syntax as ast

ABSENT = object()
Node = dict[str, Any]

GRAMMAR = r"""
query: selection ("|" selection)* | lone
lone: WORD -> lone_word | STRING -> lone_text
selection: path | condition -> bare
path: start step* | step+
start: (IDENT | "#" STRING) filter*
step: SLASH segment filter*
segment: STAR | SEGWORD | STRING
filter: "[" condition "]"
condition: all (OR all)*
all: one (AND one)*
?one: NOT one -> negated
    | "(" condition ")" -> group
    | AXIS "(" condition ")" -> axis
    | PRESENCE operand -> presence
    | operand SIGN value -> compare
    | operand TEXTOP value -> compare
    | operand BETWEEN value AND value -> between
    | operand IN "(" value ("," value)* ")" -> member
operand: ATTRIBUTE -> attribute
    | WORD -> property
    | STRING -> quoted
value: WORD -> word
    | STRING -> text

SLASH: "//" | "/"
STAR: "*"
SIGN: "!=" | ">=" | "<=" | "=" | ">" | "<"
IDENT.3: /#[^\s\[\]()|\/#@"',=!<>*]+/
ATTRIBUTE.3: /@[^\s\[\]()|\/#@"',=!<>*]+/
STRING: /"(\\(.|\n)|[^"\\])*"/ | /'(\\(.|\n)|[^'\\])*'/
AND.4: /and(?![^\s\[\]()|\/#@"',=!<>*])/i
OR.4: /or(?![^\s\[\]()|\/#@"',=!<>*])/i
NOT.4: /not(?![^\s\[\]()|\/#@"',=!<>*])/i
BETWEEN.4: /between(?![^\s\[\]()|\/#@"',=!<>*])/i
IN.4: /in(?![^\s\[\]()|\/#@"',=!<>*])/i
TEXTOP.4: /(contains|startswith|endswith)(?![^\s\[\]()|\/#@"',=!<>*])/i
PRESENCE.4: /(exists|missing)(?![^\s\[\]()|\/#@"',=!<>*])/i
AXIS.4: /(parent|ancestor|child|descendant)(?=\s*\()/i
WORD.1: /(?!(KEYWORDS)(?![^\s\[\]()|\/#@"',=!<>*]))[^\s\[\]()|\/#@"',=!<>*]+/i
SEGWORD.2: /[^\s\[\]()|\/#@"',=!<>*]+/
%ignore /\s+/
""".replace("KEYWORDS", "and|or|not|between|in|contains|startswith|endswith|exists|missing")


class Refused(Exception):
    """The query means nothing."""


def unquote(text: str) -> str:
    out, escaped = [], False
    for char in text[1:-1]:
        if escaped:
            out.append({"n": "\n", "t": "\t"}.get(char, char))
        elif char == "\\":
            escaped = True
            continue
        else:
            out.append(char)
        escaped = False
    return "".join(out)


def constant(text: str) -> Any:
    if text.lower() in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[text.lower()]
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, bool) or not isinstance(value, int | float):
        return text
    if value in (float("inf"), float("-inf")) or value != value:
        raise Refused("too large")
    return value


def comparable(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool))


@v_args(inline=True)
class Build(Transformer[Any, Any]):
    def query(self, *paths: Any) -> Any:
        return ast.Query(tuple(paths))

    def lone_word(self, word: str) -> Any:
        return self.bare(ast.AnyText(str(word)))

    def lone_text(self, text: str) -> Any:
        if unquote(text) == "":
            raise Refused("nothing to look for")
        return self.bare(ast.AnyText(unquote(text)))

    def selection(self, path: Any) -> Any:
        return path

    def bare(self, condition: Any) -> Any:
        return ast.Path(None, (), (ast.Step(True, None, (condition,)),))

    def path(self, *parts: Any) -> Any:
        if parts and not isinstance(parts[0], ast.Step):
            return ast.Path(parts[0][0], parts[0][1], tuple(parts[1:]))
        return ast.Path(None, (), tuple(parts))

    def start(self, ident: Any, *filters: Any) -> Any:
        name = ident[1:] if ident.type == "IDENT" else unquote(ident)
        return (str(name), tuple(filters))

    def step(self, slash: Any, segment: Any, *filters: Any) -> Any:
        return ast.Step(slash == "//", segment[0], tuple(filters))

    def segment(self, token: Any) -> Any:
        return (None if token.type == "STAR" else unquote(token) if token.type == "STRING" else str(token),)

    def filter(self, condition: Any) -> Any:
        return condition

    def condition(self, *parts: Any) -> Any:
        kept = tuple(part for part in parts if not hasattr(part, "type"))
        return kept[0] if len(kept) == 1 else ast.Or(kept)

    def all(self, *parts: Any) -> Any:
        kept = tuple(part for part in parts if not hasattr(part, "type"))
        return kept[0] if len(kept) == 1 else ast.And(kept)

    def negated(self, _: Any, inner: Any) -> Any:
        return ast.Not(inner)

    def group(self, inner: Any) -> Any:
        return inner

    def axis(self, name: Any, inner: Any) -> Any:
        return ast.Axis(name.lower(), inner)

    def presence(self, word: Any, operand: Any) -> Any:
        return ast.Presence(operand, word.lower() == "exists")

    def compare(self, operand: Any, op: Any, value: Any) -> Any:
        word = op.lower()
        if word in ("startswith", "endswith") and not isinstance(value[0], str):
            raise Refused("needs text")
        if word in (">", ">=", "<", "<=") and not comparable(value[0]):
            raise Refused("needs order")
        return ast.Comparison(operand, word, value)

    def between(self, operand: Any, _: Any, low: Any, __: Any, high: Any) -> Any:
        one, two = low[0], high[0]
        if not (comparable(one) and comparable(two)) or isinstance(one, str) is not isinstance(two, str) or one > two:
            raise Refused("bad bounds")
        return ast.Comparison(operand, "between", (one, two))

    def member(self, operand: Any, _: Any, *values: Any) -> Any:
        return ast.Comparison(operand, "in", tuple(value[0] for value in values))

    def attribute(self, token: Any) -> Any:
        known = {name.lower(): name for name in ("id", "type", "name", "depth", "tag", "childCount", "index")}
        if token[1:].lower() not in known:
            raise Refused("no such attribute")
        return ast.Attribute(known[token[1:].lower()])

    def property(self, token: Any) -> Any:
        return ast.Property(str(token))

    def quoted(self, token: Any) -> Any:
        return ast.Property(unquote(token))

    def word(self, token: Any) -> Any:
        return (constant(str(token)),)

    def text(self, token: Any) -> Any:
        return (unquote(token),)


_LARK = Lark(GRAMMAR, start="query", parser="lalr", lexer="contextual")


def reference_parse(query: str) -> ast.Query | None:
    """What the reference grammar makes of a query; None if it refuses it."""
    try:
        parsed: ast.Query = Build().transform(_LARK.parse(query))
    except (LarkError, Refused):
        return None
    return parsed


# Values -------------------------------------------------------------------------------------------


def values_at(value: Any, path: str) -> list[Any]:
    """Every value that a path reaches; none if it is absent."""
    if path.startswith("payload."):
        path = path[len("payload.") :]
    return _reach(value, path.split("."), top=True)


def _reach(value: Any, parts: list[str], top: bool = False) -> list[Any]:
    if not parts:
        return [value]
    if isinstance(value, list) and not top:
        return [found for item in value for found in _reach(item, parts) if isinstance(item, dict | list)]
    if not isinstance(value, dict):
        return []
    if ".".join(parts) in value:
        return [value[".".join(parts)]]
    exact = [key for key in value if key == parts[0]]
    loose = [key for key in value if key.casefold() == parts[0].casefold()]
    keys = exact or (loose if len(loose) == 1 else [])
    return _reach(value[keys[0]], parts[1:]) if keys else []


def equal(left: Any, right: Any) -> bool:
    """Equal as JSON texts, with 1 and 1.0 the same number."""

    def plain(value: Any) -> Any:
        if isinstance(value, bool) or value is None or isinstance(value, str):
            return [type(value).__name__, value]
        if isinstance(value, int | float):
            return ["number", float(value) if float(value) == value else value]
        if isinstance(value, list):
            return ["list", [plain(item) for item in value]]
        return ["object", sorted((key, plain(item)) for key, item in value.items())]

    return bool(plain(left) == plain(right))


def as_text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in leaves(inner)]
    return [leaf for inner in value for leaf in leaves(inner)] if isinstance(value, list) else [value]


def holds(op: str, found: Any, values: tuple[Any, ...]) -> bool:
    """One comparison of one value."""
    first = values[0]
    ordered = comparable(found) and isinstance(found, str) is isinstance(first, str)
    if op in ("=", "eq"):
        return equal(found, first)
    if op == "in":
        return any(equal(found, value) for value in values)
    if op == "contains":
        wanted, held = as_text(first), as_text(found)
        if held is not None:
            return wanted is not None and wanted.casefold() in held.casefold()
        return isinstance(found, list) and any(
            equal(item, first)
            or (wanted is not None and as_text(item) == wanted and isinstance(item, str) != isinstance(first, str))
            for item in found
        )
    if op == "startswith":
        return isinstance(found, str) and found.casefold()[: len(first.casefold())] == first.casefold()
    if op == "endswith":
        return isinstance(found, str) and found.casefold().endswith(first.casefold())
    if not ordered:
        return False
    if op in (">", "gt"):
        return bool(found > first)
    if op in ("<", "lt"):
        return bool(found < first)
    if op == ">=":
        return bool(found >= first)
    if op == "<=":
        return bool(found <= first)
    return bool(first <= found <= values[1])


# Nested-dict nodes: {nodeId, payloadType, payload, tags, children} ----------------------------------


def name_of(node: Node) -> str | None:
    payload = node["payload"]
    if "name" in payload:
        name = payload["name"]
    else:
        loose = [key for key in payload if key.lower() == "name"]
        name = payload[loose[0]] if len(loose) == 1 else None
    return name if isinstance(name, str) else None


def segment_of(node: Node) -> str:
    return name_of(node) or str(node["nodeId"])


class Family:
    """Parents, depths and pre-order of a nested tree, worked out afresh."""

    def __init__(self, root: Node) -> None:
        self.order: list[Node] = []
        self.parent: dict[str, Node | None] = {}
        self._note(root, None)

    def _note(self, node: Node, parent: Node | None) -> None:
        self.order.append(node)
        self.parent[node["nodeId"]] = parent
        for child in node["children"]:
            self._note(child, node)

    def ancestors(self, node: Node) -> list[Node]:
        above = self.parent[node["nodeId"]]
        return [] if above is None else [above, *self.ancestors(above)]

    def descendants(self, node: Node) -> list[Node]:
        return [one for child in node["children"] for one in [child, *self.descendants(child)]]


def matches(node: Node, condition: Any, family: Family) -> bool:
    """Whether a condition holds for a node."""
    if isinstance(condition, ast.And):
        return all(matches(node, part, family) for part in condition.parts)
    if isinstance(condition, ast.Or):
        return any(matches(node, part, family) for part in condition.parts)
    if isinstance(condition, ast.Not):
        return not matches(node, condition.inner, family)
    if isinstance(condition, ast.Axis):
        above = family.ancestors(node)
        relatives = {
            "parent": above[:1],
            "ancestor": above,
            "child": node["children"],
            "descendant": family.descendants(node),
        }[condition.name]
        return any(matches(one, condition.inner, family) for one in relatives)
    if isinstance(condition, ast.AnyText):
        return any(holds("contains", leaf, (condition.text,)) for leaf in leaves(node["payload"]))
    found = operand_values(node, condition.operand, family)
    if isinstance(condition, ast.Presence):
        return bool(found) is condition.exists
    if condition.op == "!=":
        return not any(holds("=", value, condition.values) for value in found)
    return any(holds(condition.op, value, condition.values) for value in found)


def operand_values(node: Node, operand: Any, family: Family) -> list[Any]:
    if isinstance(operand, ast.Property):
        return values_at(node["payload"], operand.path)
    above = family.ancestors(node)
    if operand.name == "name":
        return [] if name_of(node) is None else [name_of(node)]
    if operand.name == "tag":
        return list(node["tags"])
    return [
        {
            "id": node["nodeId"],
            "type": node["payloadType"],
            "depth": len(above),
            "childCount": len(node["children"]),
            "index": [child["nodeId"] for child in above[0]["children"]].index(node["nodeId"]) if above else 0,
        }[operand.name]
    ]


def naive_select(root: Node, query: ast.Query) -> list[str]:
    """The ids that a query selects, by following each path set by set."""
    family = Family(root)
    chosen: set[str] = set()
    for path in query.paths:
        start = root if path.start is None else next(one for one in family.order if one["nodeId"] == path.start)
        context = [start] if all(matches(start, test, family) for test in path.start_filters) else []
        for step in path.steps:
            reached: list[Node] = []
            for one in context:
                for candidate in family.descendants(one) if step.descendant else one["children"]:
                    fits = step.segment is None or segment_of(candidate) == step.segment
                    if fits and all(matches(candidate, test, family) for test in step.filters):
                        reached.append(candidate)
            context = reached
        chosen |= {one["nodeId"] for one in context}
    return [one["nodeId"] for one in family.order if one["nodeId"] in chosen]

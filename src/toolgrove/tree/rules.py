"""Rulesets: rules as data, each with one check, applied to a node or a whole tree."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolgrove.notation.json_schema import compiled
from toolgrove.notation.json_value import canonical, copied
from toolgrove.tree.node import Node
from toolgrove.tree.property_path import MISSING, Many, finder
from toolgrove.tree.tree import walk

Severity = Literal["error", "warning"]
Finding = tuple[str, str]
Check = Callable[[Node], Iterator[Finding]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """A node that breaks a rule, and where."""

    rule_id: str
    severity: Severity
    node: Node
    path: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """The violation as an agent reads it."""
        return {
            "ruleId": self.rule_id,
            "severity": self.severity,
            "nodeId": self.node.id,
            "path": self.path,
            "message": self.message,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One rule; `payload_only` rules are the ones that lint_payload applies."""

    id: str
    severity: Severity
    types: frozenset[str]
    check: str
    setting: Any

    @property
    def payload_only(self) -> bool:
        """Whether the rule looks at nothing but the payload."""
        return self.check in _PAYLOAD_CHECKS

    def to_json(self) -> dict[str, Any]:
        """The rule as an agent reads it, in the words of the configuration."""
        types = {"types": sorted(self.types)} if self.types else {}
        return {"id": self.id, "severity": self.severity, **types, self.check: copied(self.setting)}

    def start(self) -> Check:
        """The check, fresh for one run."""
        return _CHECKS[self.check](self.setting)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ruleset:
    """Rules that are checked together."""

    id: str
    rules: tuple[Rule, ...]

    def validate(self, root: Node) -> Iterator[Violation]:
        """Every violation in a subtree, in pre-order."""
        return _apply(self.rules, walk(root))

    def lint(self, node: Node) -> Iterator[Violation]:
        """What one node violates by its payload alone."""
        return _apply(tuple(rule for rule in self.rules if rule.payload_only), [node])


def _apply(rules: tuple[Rule, ...], nodes: Any) -> Iterator[Violation]:
    running = [(rule, rule.start()) for rule in rules]
    for node in nodes:
        for rule, check in running:
            if not rule.types or node.type in rule.types:
                for path, message in check(node):
                    yield Violation(rule_id=rule.id, severity=rule.severity, node=node, path=path, message=message)


def read_ruleset(ruleset_id: str, rules: Sequence[Mapping[str, Any]]) -> Ruleset:
    """A ruleset from configuration; ValueError says what is wrong with it."""
    return Ruleset(id=ruleset_id, rules=tuple(_read_rule(ruleset_id, at, rule) for at, rule in enumerate(rules)))


def _read_rule(ruleset_id: str, at: int, rule: Mapping[str, Any]) -> Rule:
    where = f"rulesets.{ruleset_id}[{at}]"
    checks = [key for key in rule if key in _CHECKS]
    unknown = [key for key in rule if key not in _CHECKS and key not in ("id", "severity", "types")]
    if len(checks) != 1 or unknown:
        raise ValueError(
            f"{where} needs exactly one of {', '.join(_CHECKS)}"
            + (f"; {', '.join(unknown)} is not known" if unknown else "")
        )
    severity = rule.get("severity", "error")
    if severity not in ("error", "warning"):
        raise ValueError(f"{where}.severity is error or warning, not {severity!r}")
    check, rule_id = checks[0], rule.get("id", f"{ruleset_id}-{at + 1}")
    if not isinstance(rule_id, str):
        raise ValueError(f"{where}.id must be text; put it in quotes")
    types = _read(_names, rule.get("types", []), f"{where}.types")
    _read(_CHECKS[check], rule[check], f"{where}.{check}")
    return Rule(id=rule_id, severity=severity, types=frozenset(types), check=check, setting=rule[check])


def _read(read: Callable[[Any], Any], setting: Any, where: str) -> Any:
    try:
        return read(setting)
    except ValueError as problem:
        raise ValueError(f"{where} {problem}") from None


def _names(setting: Any) -> list[str]:
    if not isinstance(setting, list) or not all(isinstance(name, str) and name for name in setting):
        raise ValueError("must be a list of names, such as [name, status]")
    return setting


def _settings(setting: Any, *known: str, needs: tuple[str, ...] = ("path",)) -> Mapping[str, Any]:
    """The settings of a check that has several; required ones must be there, and unknown ones are refused."""
    if not isinstance(setting, Mapping) or any(name not in setting for name in needs):
        raise ValueError(f"must be a mapping with {' and '.join(needs) or ' or '.join(known)}")
    for name in setting:
        if name not in known:
            raise ValueError(f"has the key {name!r}; known keys: {', '.join(known)}")
    if "path" in needs and not (isinstance(setting["path"], str) and setting["path"]):
        raise ValueError("needs the path of a property")
    return setting


def _count(setting: Mapping[str, Any], name: str) -> int | None:
    value = setting.get(name)
    if value is not None and (type(value) is not int or value < 0):
        raise ValueError(f"needs a whole number from 0 on as {name}")
    return value


def _schema(setting: Any) -> Check:
    if not isinstance(setting, Mapping):
        raise ValueError("needs a JSON Schema")
    validator = compiled(setting)

    def check(node: Node) -> Iterator[Finding]:
        for error in validator.iter_errors(node.payload):
            yield ".".join(str(part) for part in error.instance_path), error.message

    return check


def _required(setting: Any) -> Check:
    finders = {path: finder(path) for path in _names(setting)}

    def check(node: Node) -> Iterator[Finding]:
        for path, find in finders.items():
            if find(node.payload) in (MISSING, None):
                yield path, f"{path} is required"

    return check


def _parents(setting: Any) -> Check:
    allowed = frozenset(_names(setting))

    def check(node: Node) -> Iterator[Finding]:
        if node.parent is not None and node.parent.type not in allowed:
            yield "", f"a {node.type} belongs under {_words(setting)}, not under a {node.parent.type}"

    return check


def _children(setting: Any) -> Check:
    allowed = frozenset(_names(setting))

    def check(node: Node) -> Iterator[Finding]:
        strange = {child.type for child in (node.children or {}).values()} - allowed
        for name in sorted(strange):
            yield "", f"a {node.type} may hold {_words(setting) or 'nothing'}, not a {name}"

    return check


def _cardinality(setting: Any) -> Check:
    _settings(setting, "type", "min", "max", needs=())
    kind, low, high = setting.get("type"), _count(setting, "min") or 0, _count(setting, "max")
    if high is not None and high < low:
        raise ValueError(f"has a min of {low} above its max of {high}")
    what = f"{kind} children" if kind else "children"

    def check(node: Node) -> Iterator[Finding]:
        children = (node.children or {}).values()
        count = len(children) if kind is None else sum(child.type == kind for child in children)
        if count < low:
            yield "", f"needs at least {low} {what}, has {count}"
        if high is not None and count > high:
            yield "", f"allows at most {high} {what}, has {count}"

    return check


def _unique(setting: Any) -> Check:
    path, within = _settings(setting, "path", "within")["path"], setting.get("within", "tree")
    if within not in ("tree", "siblings"):
        raise ValueError(f"is within 'tree' or 'siblings', not {within!r}")
    siblings = within == "siblings"
    find = finder(path)
    seen: dict[tuple[str | None, str], str] = {}

    def check(node: Node) -> Iterator[Finding]:
        value = find(node.payload)
        if value in (MISSING, None):
            return
        scope = node.parent.id if siblings and node.parent is not None else None
        first = seen.setdefault((scope, canonical(value)), node.id)
        if first != node.id:
            yield path, f"{path} {canonical(value)} is taken by {first}"

    return check


def _format(setting: Any) -> Check:
    path = _settings(setting, "path", "is", needs=("path", "is"))["path"]
    names = [setting["is"]] if isinstance(setting["is"], str) else _names(setting["is"])
    unknown = [name for name in names if name not in _FORMATS]
    if unknown:
        raise ValueError(f"is one of {', '.join(_FORMATS)}, not {unknown[0]!r}")
    find = finder(path)
    tests = [_FORMATS[name] for name in names]

    def check(node: Node) -> Iterator[Finding]:
        found = find(node.payload)
        for value in found if type(found) is Many else [found]:
            if isinstance(value, str):
                yield from ((path, message) for test, message in tests if not test(value))

    return check


def _max_length(setting: Any) -> Check:
    path = _settings(setting, "path", "max", needs=("path", "max"))["path"]
    limit = _count(setting, "max") or 0
    find = finder(path)

    def check(node: Node) -> Iterator[Finding]:
        value = find(node.payload)
        if isinstance(value, str) and len(value) > limit:
            yield path, f"has {len(value)} characters; at most {limit} are allowed"

    return check


def _is_iso_date(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


_FORMATS: dict[str, tuple[Callable[[str], bool], str]] = {
    "trimmed": (lambda text: text == text.strip(), "has spaces at its start or end"),
    "nonEmpty": (lambda text: bool(text.strip()), "is empty"),
    "singleLine": (lambda text: "\n" not in text and "\r" not in text, "has more than one line"),
    "lowercase": (lambda text: text == text.lower(), "is not all lower case"),
    "uppercase": (lambda text: text == text.upper(), "is not all upper case"),
    "isoDate": (_is_iso_date, "is not a date like 2026-01-31"),
}
_CHECKS: dict[str, Callable[[Any], Check]] = {
    "schema": _schema,
    "required": _required,
    "format": _format,
    "maxLength": _max_length,
    "allowedParents": _parents,
    "allowedChildren": _children,
    "cardinality": _cardinality,
    "unique": _unique,
}
_PAYLOAD_CHECKS = frozenset(("schema", "required", "format", "maxLength"))


def _words(names: Any) -> str:
    return " or ".join(names)

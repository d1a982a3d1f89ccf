"""Compiles a condition to a closure over nodes; the caller's text stays data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolgrove.tree import predicate
from toolgrove.tree.dsl.syntax import And, AnyText, Attribute, Axis, Comparison, Condition, Not, Operand, Or, Presence
from toolgrove.tree.node import Node
from toolgrove.tree.node_attributes import QueryMemory, attribute
from toolgrove.tree.predicate import Predicate, Test
from toolgrove.tree.property_path import MISSING, Many, finder
from toolgrove.tree.tree import walk

_TESTS: dict[str, Callable[..., Test]] = {
    "=": predicate.equals,
    "!=": predicate.equals,
    ">": predicate.greater,
    ">=": predicate.greater_or_equal,
    "<": predicate.less,
    "<=": predicate.less_or_equal,
    "contains": predicate.contains,
    "startswith": predicate.starts_with,
    "endswith": predicate.ends_with,
    "between": predicate.within,
}


def compile_condition(condition: Condition, memory: QueryMemory) -> Predicate:
    """One function for the whole condition."""
    match condition:
        case And(parts):
            return predicate.every([compile_condition(part, memory) for part in parts])
        case Or(parts):
            return predicate.either([compile_condition(part, memory) for part in parts])
        case Not(inner):
            refused = compile_condition(inner, memory)
            return lambda node: not refused(node)
        case Axis(name, inner):
            return _axis(name, compile_condition(inner, memory))
        case Presence(operand, exists):
            find = _operand(operand, memory)
            return lambda node: (find(node) is not MISSING) is exists
        case AnyText(text):
            return predicate.any_property(predicate.contains(text))
        case Comparison():
            return _comparison(condition, memory)


def _comparison(condition: Comparison, memory: QueryMemory) -> Predicate:
    test = _test(condition)
    negated = condition.op == "!="
    if isinstance(condition.operand, Attribute):
        holds = _on_attribute(_operand(condition.operand, memory), test)
    else:
        holds = predicate.on_property(condition.operand.path, test)
    return (lambda node: not holds(node)) if negated else holds


def _on_attribute(find: Callable[[Node], Any], test: Test) -> Predicate:
    def holds(node: Node) -> bool:
        found = find(node)
        return any(map(test, found)) if type(found) is Many else test(found)

    return holds


def _test(condition: Comparison) -> Test:
    if condition.op != "in":
        return _TESTS[condition.op](*condition.values)
    tests = [predicate.equals(value) for value in condition.values]
    return lambda found: any(test(found) for test in tests)


def _operand(operand: Operand, memory: QueryMemory) -> Callable[[Node], Any]:
    if not isinstance(operand, Attribute):
        find = finder(operand.path)
        return lambda node: find(node.payload)
    return attribute(operand.name, memory)


def _axis(name: str, test: Predicate) -> Predicate:
    if name == "parent":
        return lambda node: node.parent is not None and test(node.parent)
    if name == "child":
        return lambda node: node.children is not None and any(map(test, node.children.values()))
    # Ancestors and descendants are remembered per run: each node is tested once, not once per relative.
    return _ancestor(test) if name == "ancestor" else _descendant(test)


def _ancestor(test: Predicate) -> Predicate:
    below: dict[str, bool] = {}

    def holds(node: Node) -> bool:
        trail: list[Node] = []
        at = node
        while at.id not in below and at.parent is not None:
            trail.append(at)
            at = at.parent
        found = below.get(at.id, False)
        for one in reversed(trail):
            found = found or (one.parent is not None and test(one.parent))
            below[one.id] = found
        return found

    return holds


def _descendant(test: Predicate) -> Predicate:
    above: dict[str, bool] = {}

    def holds(node: Node) -> bool:
        if node.id not in above:
            for one in reversed(list(walk(node))):
                if one.id not in above:
                    kids = one.children.values() if one.children else ()
                    above[one.id] = any(above[kid.id] or test(kid) for kid in kids)
        return above[node.id]

    return holds

"""Reads a selection query; every error says where, what was expected and what to write instead.

query     = selection { "|" selection }
selection = path | condition | word | string
path      = [ "#" id { filter } ] { ("/" | "//") segment { filter } }
segment   = "*" | word | string
filter    = "[" condition "]"
condition = all { "or" all }
all       = one { "and" one }
one       = "not" one | "(" condition ")" | axis "(" condition ")"
          | ("exists" | "missing") operand | operand comparison
comparison = ("=" | "!=" | ">" | ">=" | "<" | "<=" | "contains" | "startswith" | "endswith") value
          | "between" value "and" value | "in" "(" value { "," value } ")"
operand   = "@" attribute | word | string
value     = number | "true" | "false" | "null" | word | string
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NoReturn

from toolgrove.errors import BadQuery, closest
from toolgrove.tree.dsl.syntax import (
    And,
    AnyText,
    Attribute,
    Axis,
    Comparison,
    Condition,
    Not,
    Operand,
    Or,
    Path,
    Presence,
    Property,
    Query,
    Step,
)
from toolgrove.tree.dsl.tokens import Token, literal, tokenize
from toolgrove.tree.node_attributes import ATTRIBUTES
from toolgrove.tree.predicate import check_bounds, is_ordered

MAX_BYTES = 4096
MAX_NESTING = 32
AXES = ("parent", "ancestor", "child", "descendant")
SIGNS = ("=", "!=", ">", ">=", "<", "<=")
WORDS = ("contains", "startswith", "endswith", "between", "in")
KEYWORDS = frozenset((*WORDS, "and", "or", "not", "exists", "missing"))
_ATTRIBUTE = {name.lower(): name for name in ATTRIBUTES}
_HABITS = {
    "like": "Write contains, startswith or endswith instead of LIKE, without %.",
    "ilike": "Write contains; it ignores letter case already.",
    "is": "Write '= null' for a null value, or 'missing property' for an absent one.",
    "matches": "There are no patterns: use contains, startswith or endswith.",
    "equals": "Write '='.",
    "eq": "Write '='.",
    "gt": "Write '>'.",
    "lt": "Write '<'.",
    "ne": "Write '!='.",
}


@lru_cache(maxsize=256)
def parse(query: str) -> Query:
    """Read a query, or say with a caret where it goes wrong."""
    size = len(query.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        problem = f"the query has {size} bytes; at most {MAX_BYTES} are read"
        raise BadQuery(query=query[:40], position=0, problem=problem, hint="Split it into several queries.")
    return _Parser(query).query()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0
        self.depth = 0

    def query(self) -> Query:
        paths = [self.selection()]
        while self.accept("|"):
            paths.append(self.selection())
        if self.token.kind != "end":
            self.fail_after_selection()
        return Query(tuple(paths))

    def selection(self) -> Path:
        if self.token.keyword in ("select", "where"):
            self.fail("this is not SQL", hint="Write only the condition: status = done and size > 5.")
        if self.is_text():
            return Path(None, (), (Step(True, None, (AnyText(self.take().text),)),))
        if self.token.kind not in ("/", "//", "id"):
            return Path(None, (), (Step(True, None, (self.condition(),)),))
        start: str | None = None
        filters: tuple[Condition, ...] = ()
        if self.token.kind == "id":
            start, filters = self.take().text, self.filters()
        steps: list[Step] = []
        while self.token.kind in ("/", "//"):
            descendant = self.take().kind == "//"
            steps.append(Step(descendant, self.segment(), self.filters()))
        return Path(start, filters, tuple(steps))

    def is_text(self) -> bool:
        """Whether the whole query is one word or one quoted text, which any property may contain."""
        is_one = len(self.tokens) == 2 and self.token.kind in ("word", "string")
        return is_one and self.token.text != "" and self.token.keyword not in KEYWORDS

    def segment(self) -> str | None:
        if self.accept("*"):
            if self.token.kind in ("word", "string") and self.token.position == self.tokens[self.at - 1].end:
                self.fail_wildcard()
            return None
        if self.token.kind not in ("word", "string"):
            self.fail(f"a path needs a node name here, not {self.shown()}", ["a node name", "'*'"])
        name = self.take()
        if self.token.kind == "*" and self.token.position == name.end:
            self.fail_wildcard()
        return name.text

    def filters(self) -> tuple[Condition, ...]:
        found: list[Condition] = []
        while self.accept("["):
            if self.token.kind == "word" and self.token.text.isdigit() and self.peek("]", 1):
                self.fail("a filter holds a condition", hint=f"For the position write [@index = {self.token.text}].")
            found.append(self.nested(self.condition))
            self.expect("]")
        return tuple(found)

    def condition(self) -> Condition:
        return self.joined("or", Or, lambda: self.joined("and", And, self.one))

    def joined(self, word: str, join: type[And] | type[Or], part: Callable[[], Condition]) -> Condition:
        parts = [part()]
        while self.token.keyword == word:
            self.take()
            parts.append(part())
        return parts[0] if len(parts) == 1 else join(tuple(parts))

    def one(self) -> Condition:
        token = self.token
        if token.keyword == "not":
            self.take()
            return Not(self.nested(self.one))
        if self.accept("("):
            inner = self.nested(self.condition)
            self.expect(")")
            return inner
        if token.keyword in AXES and self.peek("(", 1):
            self.at += 2
            axis = Axis(token.keyword, self.nested(self.condition))
            self.expect(")")
            return axis
        if token.keyword in ("exists", "missing"):
            self.take()
            return Presence(self.operand(), token.keyword == "exists")
        return self.comparison()

    def operand(self) -> Operand:
        token = self.token
        if token.kind == "attribute":
            name = _ATTRIBUTE.get(token.text.lower(), "")
            if not name:
                near = closest(token.text, ATTRIBUTES)
                advice = f"Did you mean @{near}?" if near else "A payload property is written without '@'."
                self.fail(f"there is no @{token.text}", [f"@{known}" for known in ATTRIBUTES], advice)
            self.take()
            return Attribute(name)
        if token.kind == "string" or (token.kind == "word" and token.keyword not in KEYWORDS):
            self.take()
            return Property(token.text)
        hint = f'Quote a property called {token.text}: "{token.text}".' if token.keyword else None
        self.fail(f"a condition needs a property here, not {self.shown()}", ["a property", "'@' attribute"], hint)

    def comparison(self) -> Condition:
        operand = self.operand()
        token = self.token
        op = token.kind if token.kind in SIGNS else token.keyword if token.keyword in WORDS else ""
        if not op:
            self.fail_operator()
        self.take()
        if op == "in":
            return Comparison(operand, op, self.members())
        first_at = self.token
        first = self.value()
        if op == "between":
            return self.range(operand, first, first_at)
        if op in ("startswith", "endswith") and not isinstance(first, str):
            self.fail(f"{op} needs text", ["text"], f'Quote it: {op} "{first_at.text}".', first_at)
        if op in (">", ">=", "<", "<=") and not is_ordered(first):
            self.fail(f"{op} needs a number or text", ["a number", "text"], None, first_at)
        return Comparison(operand, op, (first,))

    def range(self, operand: Operand, low: Any, low_at: Token) -> Condition:
        if self.token.keyword != "and":
            self.fail("between needs two bounds", ["'and'"], "Write: size between 10 and 20.")
        self.take()
        high = self.value()
        problem = check_bounds(low, high)
        if problem:
            self.fail("this range cannot match", (), problem[0].upper() + problem[1:] + ".", low_at)
        return Comparison(operand, "between", (low, high))

    def members(self) -> tuple[Any, ...]:
        if not self.accept("("):
            self.fail("in needs a list", ["'('"], "Write: kind in (room, floor).")
        members = [self.value()]
        while self.accept(","):
            members.append(self.value())
        self.expect(")")
        return tuple(members)

    def value(self) -> Any:
        token = self.token
        if token.kind not in ("word", "string") or token.keyword in KEYWORDS:
            hint = f'Quote the word {token.text} to use it as text: "{token.text}".' if token.keyword else None
            self.fail(f"a value is missing before {self.shown()}", ["a value"], hint)
        value = literal(token)
        if isinstance(value, float) and not math.isfinite(value):
            self.fail("this number is too large")
        self.take()
        return value

    # Tokens and failures ------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def accept(self, kind: str) -> bool:
        if self.token.kind != kind:
            return False
        self.at += 1
        return True

    def peek(self, kind: str, ahead: int) -> bool:
        return self.at + ahead < len(self.tokens) and self.tokens[self.at + ahead].kind == kind

    def expect(self, kind: str) -> None:
        if not self.accept(kind):
            wanted = [f"'{kind}'", "'and'", "'or'"]
            self.fail(f"{self.shown()} does not belong here", wanted, self.two_words())

    def nested(self, part: Callable[[], Condition]) -> Condition:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(f"more than {MAX_NESTING} levels of nesting", hint="Split the query, or use fewer brackets.")
        inner = part()
        self.depth -= 1
        return inner

    def shown(self) -> str:
        return (
            "the end of the query"
            if self.token.kind == "end"
            else repr(self.text[self.token.position : self.token.end])
        )

    def two_words(self) -> str | None:
        """Advice where a bare value is followed by another word."""
        if self.at == 0 or self.token.kind != "word":
            return None
        last = self.tokens[self.at - 1]
        if last.kind != "word" or last.keyword in KEYWORDS:
            return None
        return f'Quote a value of several words: "{last.text} {self.token.text}".'

    def fail_operator(self) -> NoReturn:
        token = self.token
        wanted = [*(f"'{sign}'" for sign in SIGNS), *WORDS]
        hint = _HABITS.get(token.keyword)
        near = closest(token.text, (*WORDS, "and", "or")) if token.kind == "word" and hint is None else None
        if near:
            hint = f"Did you mean '{near}'?"
        elif token.keyword == "not":
            hint = "'not' stands before the whole condition: not kind in (room, floor)."
        elif hint is None and token.kind in ("/", "//"):
            hint = "A path starts with '/': write /House/Room, or use dots in a property path: meta.size."
        elif hint is None:
            hint = (
                "A condition reads: property operator value, for example status = done. "
                'Several words to look for stand in quotes: "living room".'
            )
        self.fail(f"an operator is missing before {self.shown()}", wanted, hint)

    def fail_wildcard(self) -> NoReturn:
        hint = "'*' stands alone; for part of a name write *[@name startswith Room] or [@name contains Room]."
        self.fail("'*' cannot be part of a name", (), hint)

    def fail_after_selection(self) -> NoReturn:
        hint = self.two_words()
        near = closest(self.token.text, ("and", "or")) if self.token.kind == "word" and self.after_value() else None
        if near and hint:
            hint = f"Did you mean '{near}'?"
        if self.token.kind == "[":
            hint = "A filter stands after a path step: //*[condition]."
        self.fail(f"{self.shown()} does not belong here", ["'and'", "'or'", "'|'", "the end"], hint)

    def after_value(self) -> bool:
        return self.at > 0 and self.tokens[self.at - 1].kind in ("word", "string")

    def fail(
        self, problem: str, expected: Sequence[str] = (), hint: str | None = None, at: Token | None = None
    ) -> NoReturn:
        position = (at or self.token).position
        raise BadQuery(query=self.text, position=position, problem=problem, expected=expected, hint=hint)

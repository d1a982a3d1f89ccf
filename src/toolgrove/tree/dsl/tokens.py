"""Cuts a query into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from toolgrove.errors import BadQuery

_WORD = re.compile(r"""[^\s\[\]()|/#@"',=!<>*]+""")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_MARKS = ("//", "!=", ">=", "<=", "/", "|", "[", "]", "(", ")", ",", "*", "=", ">", "<")
_ESCAPES = {"n": "\n", "t": "\t"}
_FOREIGN = {
    "==": "Equality is a single '='.",
    "<>": "Write '!=' for not equal.",
    "&&": "Write 'and' instead of '&&'.",
    "||": "Write 'or' instead of '||'; a single '|' joins two selections.",
    "?(": "Filters are written [condition], without '?' and '()'.",
    "..": "Write '//' for descendants at any depth.",
    "$": "There is no '$': start with '//' for anywhere or '/' for the top level, or write a bare condition.",
    "@.": "Properties are written bare: price > 10, not @.price > 10.",
    "!": "Write 'not condition', or '!=' for not equal.",
    "~": "There are no patterns: use contains, startswith or endswith.",
}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a query: `kind` is the mark itself, or word, string, id, attribute, end."""

    kind: str
    text: str
    position: int
    end: int

    @property
    def keyword(self) -> str:
        """The word in lower case; nothing else is a keyword."""
        return self.text.lower() if self.kind == "word" else ""


def foreign_habit(query: str, position: int) -> str | None:
    """What to write instead of something from another query language."""
    return next((hint for sign, hint in _FOREIGN.items() if query.startswith(sign, position)), None)


def number(text: str) -> int | float | None:
    """The number that a bare word spells, if it does."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    return float(text) if match[2] or match[3] else int(text)


def tokenize(query: str) -> list[Token]:
    """All tokens, the last one of kind `end`."""
    tokens: list[Token] = []
    at = 0
    while at < len(query):
        if query[at].isspace():
            at += 1
            continue
        token = _next(query, at)
        tokens.append(token)
        at = token.end
    tokens.append(Token("end", "", len(query), len(query)))
    return tokens


def _next(query: str, at: int) -> Token:
    char = query[at]
    if char in "\"'":
        text, end = _string(query, at)
        return Token("string", text, at, end)
    if char in "#@":
        return _prefixed(query, at)
    foreign = foreign_habit(query, at)
    if foreign and not query.startswith("!=", at):
        raise BadQuery(query=query, position=at, problem=f"unexpected {char!r}", hint=foreign)
    for mark in _MARKS:
        if query.startswith(mark, at):
            return Token(mark, mark, at, at + len(mark))
    match = _WORD.match(query, at)
    if match is None:
        raise BadQuery(query=query, position=at, problem=f"unexpected {char!r}")
    return Token("word", match[0], at, match.end())


def _prefixed(query: str, at: int) -> Token:
    kind = "id" if query[at] == "#" else "attribute"
    if kind == "id" and query[at + 1 : at + 2] in ('"', "'"):
        text, end = _string(query, at + 1)
        return Token(kind, text, at, end)
    match = _WORD.match(query, at + 1)
    if match is None or (kind == "attribute" and match[0].startswith(".")):
        what = "a node id" if kind == "id" else "an attribute name"
        raise BadQuery(
            query=query, position=at, problem=f"{query[at]!r} must be followed by {what}", hint=foreign_habit(query, at)
        )
    return Token(kind, match[0], at, match.end())


def _string(query: str, at: int) -> tuple[str, int]:
    out: list[str] = []
    quote, end = query[at], at + 1
    while end < len(query):
        char = query[end]
        if char == quote:
            return "".join(out), end + 1
        if char == "\\" and end + 1 < len(query):
            end += 1
            char = _ESCAPES.get(query[end], query[end])
        out.append(char)
        end += 1
    raise BadQuery(
        query=query,
        position=at,
        problem="this quote is never closed",
        expected=[quote],
        hint=f"Close the text with {quote}; write \\{quote} for a quote inside it.",
    )


def literal(token: Token) -> Any:
    """The value that a word or string stands for."""
    if token.kind == "string":
        return token.text
    constants = {"true": True, "false": False, "null": None}
    if token.keyword in constants:
        return constants[token.keyword]
    value = number(token.text)
    return token.text if value is None else value

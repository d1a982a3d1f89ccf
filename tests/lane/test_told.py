"""A result that is written already: its answer is the one that the same result gets that is not."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcp_serve.answer import Told
from mcp_serve.plain import Plain
from mcp_serve.wire import Writer
from toolgrove.notation.json_value import compact_ascii

LETTERS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | LETTERS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(LETTERS, inner, max_size=4),
    max_leaves=12,
)
WRITER = Writer({"name": '100 % "text":""', "version": '"structuredContent":{}'})


@given(value=st.dictionaries(LETTERS, VALUES, max_size=6), modern=st.booleans(), number=st.integers() | LETTERS)
def test_it_says_what_the_same_result_says_as_a_dictionary(value: dict[str, Any], modern: bool, number: Any) -> None:
    told = Told(value, compact_ascii(value))
    request = Plain(number, "tools/call", {}, modern)
    written, usual = (json.loads(WRITER.called(request, answer)) for answer in (told, dict(told)))
    assert written == usual
    assert written["result"]["structuredContent"] == value
    assert json.loads(written["result"]["content"][0]["text"]) == value


@given(value=st.dictionaries(LETTERS, LETTERS | st.integers(), max_size=6), modern=st.booleans())
def test_it_is_the_same_to_the_letter_where_no_number_has_a_fraction(value: dict[str, Any], modern: bool) -> None:
    told = Told(value, compact_ascii(value))
    request = Plain(1, "tools/call", {}, modern)
    assert WRITER.called(request, told) == WRITER.called(request, dict(told))

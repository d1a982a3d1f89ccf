"""JSON from strangers is read as JSON says, or refused with a ValueError that says why."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrove.notation import strict_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@pytest.mark.long
@given(value=VALUES)
def test_what_json_can_carry_comes_through(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)

    assert strict_json.decode(text) == value
    assert strict_json.decode(text, unique=True) == value
    assert strict_json.decode_utf8(text.encode()) == value


@given(text=st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_whatever_else_is_read_is_a_value_or_a_refusal(text: str) -> None:
    for read in (strict_json.decode, lambda some: strict_json.decode_utf8(some.encode())):
        with contextlib.suppress(ValueError):
            read(text)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}', "1e999", "[-1e400]"])
def test_a_number_that_json_cannot_carry_is_refused(text: str) -> None:
    for read in (strict_json.decode, lambda some: strict_json.decode_utf8(some.encode())):
        with pytest.raises(strict_json.NotANumber):
            read(text)


def test_endless_nesting_is_refused_like_any_other_nonsense() -> None:
    with pytest.raises(strict_json.TooDeep):
        strict_json.decode("[" * 200_000)


def test_a_repeated_key_is_refused_where_a_person_wrote_the_text() -> None:
    text = '[{"a": 1, "b": {"twice": 1, "twice": 1}}]'

    assert strict_json.decode(text) == [{"a": 1, "b": {"twice": 1}}]
    with pytest.raises(strict_json.RepeatedKey, match="key 'twice' stands twice"):
        strict_json.decode(text, unique=True)


@pytest.mark.parametrize("raw", [b'"\\ud800"', b'{"\\uDFFF": 1}', b'"\xff"', '"ü"'.encode("latin-1")])
def test_text_that_cannot_be_written_as_utf8_again_is_refused(raw: bytes) -> None:
    with pytest.raises(UnicodeError):
        strict_json.decode_utf8(raw)


def test_a_whole_character_may_be_written_as_two_escapes() -> None:
    assert strict_json.decode_utf8(b'"\\ud83c\\udf33"') == "\U0001f333"

"""Times and texts as everybody writes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrove.notation.times import to_milliseconds, to_seconds
from toolgrove.notation.unseen_text import blanked, one_line, unseen, visible

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(millis=st.integers(min_value=-(10**12), max_value=4 * 10**12))
def test_a_moment_is_written_as_the_standard_library_writes_it(millis: int) -> None:
    moment = EPOCH + timedelta(milliseconds=millis)

    assert to_milliseconds(millis / 1000) == moment.isoformat(timespec="milliseconds")
    assert to_seconds(millis / 1000) == moment.isoformat(timespec="seconds")


@given(text=st.text(alphabet=st.characters()))
def test_nothing_unseen_is_left_in_a_text_for_people(text: str) -> None:
    for shown in (visible(text), one_line(text), blanked(text)):
        assert unseen(shown) is None
    assert not set(one_line(text)) & set("\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
    assert len(blanked(text)) == len(text)


@pytest.mark.long
@given(value=st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_stays_the_same_json_when_it_is_made_visible(value: Any) -> None:
    assert json.loads(visible(json.dumps(value, ensure_ascii=False, indent=2))) == value


def test_plain_words_tabs_and_letters_of_every_script_stay() -> None:
    text = "grün\tдерево 木 \U0001f333"

    assert visible(text + "\n") == text + "\n"
    assert one_line(text) == text

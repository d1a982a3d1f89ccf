"""Large values are written in pieces, to the same text."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from toolgrove.notation.json_value import compact, has_many, in_pieces

LARGE: list[Any] = [
    'é\n"\\' * 40_000,
    [{"at": at, "text": "x" * (at % 90)} for at in range(3_000)],
    {f"k{at}": [at, None, 1.5, {"deep": ["y" * 70_000] if at == 7 else []}] for at in range(600)},
    ["small", {"z" * 70_000: {"inner": list(range(20_000))}}, "end"],
]


@pytest.mark.parametrize("value", [*LARGE, [], {}, 1, None, "", [[], {}]], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("encode", [partial(compact, ascii=True), json.dumps], ids=["compact", "standard"])
def test_a_value_in_pieces_reads_as_the_whole(value: Any, encode: Any) -> None:
    text = in_pieces(value, encode)
    assert json.loads(text) == value
    if encode is not json.dumps:
        assert text == encode(value)


def test_counting_values_ends_early_and_takes_whatever_there_is() -> None:
    circle: list[Any] = [object(), {1: 2}]
    circle.append(circle)
    assert has_many(circle, 1_000)
    assert has_many([0] * 1_000, 1_000)
    assert not has_many({"a": [1, 2, {"b": 3}]}, 7)

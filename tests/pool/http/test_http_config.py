"""What is wrong with an entry of `httpTools` is said when the file is read."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from toolgrove.config import HttpToolConfig


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({}, "name a url, or an openapi document"),
        ({"url": "ftp://h/"}, "https://host"),
        ({"url": "file:///etc/passwd"}, "https://host"),
        ({"url": "http://user@h/"}, "no user"),
        ({"url": "http://{host}/"}, "no {x}"),
        ({"url": "http://${env:HOST}/"}, "no ${…}"),
        ({"url": "http://h/{id}"}, "{id}, which inputSchema.properties does not name"),
        ({"url": "http://h/", "method": "GET /evil"}, "is not a method"),
        ({"url": "http://h/", "method": "CONNECT"}, "is not a method"),
        ({"url": "http://h/", "method": ""}, "is not a method"),
        ({"url": "http://h/", "headers": {"Host": "x"}}, "belongs to the connection"),
        ({"url": "http://h/", "headers": {"content-length": "1"}}, "belongs to the connection"),
        ({"url": "http://h/", "headers": {"Transfer-Encoding": "x"}}, "belongs to the connection"),
        ({"url": "http://h/", "headers": {"Proxy-Authorization": "x"}}, "belongs to the connection"),
        ({"url": "http://h/", "headers": {"a b": "x"}}, "illegal"),
        ({"url": "http://h/", "headers": {"X": "a\r\nY: b"}}, "control character"),
        ({"url": "http://h/", "headers": {"X": "a", "x": "b"}}, "twice"),
        ({"url": "http://h/", "headers": {"X-HTTP-Method-Override": "DELETE"}}, "write it as method"),
        ({"url": "http://h/", "inputSchema": {}}, "type: object"),
        ({"url": "http://h/", "timeout": 0}, "greater than 0"),
        ({"openapi": "x.json", "headers": {"Authorization": "x"}}, "not to one that a document chooses: add url"),
        ({"openapi": "x.json", "reads": True}, 'such as reads: ["search*"]'),
        ({"url": "http://h/", "method": "POST", "reads": ["t"]}, "patterns are for entries with openapi"),
        ({"url": "http://h/", "method": "DELETE", "reads": True}, "a DELETE never only reads"),
    ],
)
def test_a_wrong_entry_says_what_to_write(entry: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as caught:
        HttpToolConfig.model_validate(entry)
    assert told in str(caught.value)


def test_the_method_is_written_one_way() -> None:
    assert HttpToolConfig(url="http://h/", method="pAtCh").method == "PATCH"


def test_references_may_stand_in_headers_path_and_query() -> None:
    entry = {"url": "https://h/${env:TENANT}?k=${file:/run/key}", "headers": {"Authorization": "Bearer ${env:T}"}}
    assert HttpToolConfig.model_validate(entry).url == entry["url"]

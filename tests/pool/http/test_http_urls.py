"""URLs: read once by one parser; arguments fill gaps and change nothing else."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrove.errors import InvalidArgument
from toolgrove.pool.http.operation import HttpOperation
from toolgrove.pool.http.request import HttpRequest, build_request
from toolgrove.pool.http.url import BadUrl, parse_template

LITERAL = re.compile(r"[!-~]+")


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "gopher://h/", "ftp://h/", "data:text/plain,x", "javascript:alert(1)", "//h/", "h/x"),
        *("http://allowed@evil/", "http://user:pass@h/", "http://evil#@allowed/", "http://h/x#f", "http://h\\@evil/"),
        *(
            "http://h/a\\b",
            "http://h/\tx",
            "http://h/x\r\nHost: evil",
            "http://h:0x50/",
            "http://h:99999/",
            "http://h:0/",
        ),
        *(
            "http://h:/",
            "http:///x",
            "http://",
            "http://{host}/x",
            "http://h{x}/",
            "http://${env:HOST}/",
            "http://h.{x}",
        ),
        *(
            "http://127.1/",
            "http://0/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://1.2.3/",
        ),
        *(
            "http://①②⑦.⓪.⓪.①/",
            "http://127。0。0。1/",
            "http://bücher.example/",
            "http://[::1/",
            "http://[fe80::1%25eth0]/",
        ),
        *(
            "http://[::g]/",
            "http://-h/",
            "http://h..x/",
            "http://h/../x",
            "http://h/%2e%2e/x",
            "http://h/./x",
            "http://h/%",
        ),
        *(
            "http://h/é",
            "http://h/a b",
            "http://h/<x>",
            "http://h?x={a}#b",
            "http://h/%zz",
            "http://h{x",
            "http://h/{x",
        ),
        *(
            "http://127.0.0.0x1/",
            "http://0x7f.1/",
            "http://1.2.3.4.5/",
            "http://h/\x00",
            "http://h:80:80/",
            "http://h:８０/",
        ),
    ],
)
def test_what_is_no_plain_url_is_refused(url: str) -> None:
    with pytest.raises(BadUrl):
        parse_template(url)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://h/x", ("http", "h", 80)),
        ("HTTPS://Shop.Example:8443/x", ("https", "shop.example", 8443)),
        ("http://[::1]:8080/", ("http", "::1", 8080)),
        ("http://[0:0::1]/", ("http", "::1", 80)),
        ("http://192.0.2.1/x", ("http", "192.0.2.1", 80)),
        ("http://xn--bcher-kva.example?a=b", ("http", "xn--bcher-kva.example", 80)),
        ("http://under_score.example./", ("http", "under_score.example.", 80)),
    ],
)
def test_the_origin_is_read_once(url: str, origin: tuple[str, str, int]) -> None:
    found = parse_template(url).origin
    assert (found.scheme, found.host, found.port) == origin


def operation(url: str, method: str = "GET", **properties: Any) -> HttpOperation:
    return HttpOperation(
        name="t",
        own_name="t",
        entry="httpTools.t",
        method=method,
        url=parse_template(url),
        description="",
        input_schema={"type": "object", "properties": properties},
    )


def request(url: str, method: str = "GET", **arguments: Any) -> HttpRequest:
    return build_request(operation(url, method), arguments, lambda template, field: template)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("a/b", "a%2Fb"),
        ("%2f", "%252f"),
        ("a\\b", "a%5Cb"),
        ("a b?c#d&e=f;g", "a%20b%3Fc%23d%26e%3Df%3Bg"),
        ("ü", "%C3%BC"),
        ("${env:HOME}", "%24%7Benv%3AHOME%7D"),
        ("{id}", "%7Bid%7D"),
        ("http://evil/", "http%3A%2F%2Fevil%2F"),
        ("@evil", "%40evil"),
        ("...", "..."),
        (7, "7"),
        (1.5, "1.5"),
        (True, "true"),
        (["a", "b,c"], "a%2Cb%2Cc"),
    ],
)
def test_a_value_is_one_encoded_segment(value: Any, encoded: str) -> None:
    assert request("http://h/items/{id}/parts", id=value).target == f"/items/{encoded}/parts"


@pytest.mark.parametrize(
    "value",
    [
        *("", ".", "..", "../x", "x/..", "a/../b", "..\\x", "%2e%2e", "%2E%2E/x", "..%2fadmin", "%2e", "a/./b"),
        *("\x00", "a\r\nHost: evil", "\x7f", "\ud800", "\x85", None, {"a": 1}, [None], []),
    ],
)
def test_a_value_that_would_bend_the_path_is_refused(value: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        request("http://h/items/{id}", id=value)
    assert "'id'" in caught.value.message


def test_parts_of_a_segment_cannot_make_dots_together() -> None:
    with pytest.raises(InvalidArgument):
        request("http://h/{a}{b}/x", a=".", b=".")
    assert request("http://h/{a}.{b}/x", a="v", b="json").target == "/v.json/x"


def test_other_inputs_go_to_the_query_or_into_the_body() -> None:
    arguments: dict[str, Any] = {"id": "7", "q": "a&b=c", "tags": ["x", "y z"], "deep": {"a": 1}, "none": None}
    for method in ("GET", "HEAD", "DELETE"):
        sent = request("http://h/items/{id}?fixed=1", method, **arguments)
        assert sent.target == "/items/7?fixed=1&q=a%26b%3Dc&tags=x&tags=y%20z&deep=%7B%22a%22%3A1%7D"
        assert sent.content == b""
    for method in ("POST", "PUT", "PATCH", "LINK"):
        sent = request("http://h/items/{id}?fixed=1", method, **arguments)
        assert sent.target == "/items/7?fixed=1"
        assert sent.content == b'{"q":"a&b=c","tags":["x","y z"],"deep":{"a":1},"none":null}'
        assert sent.headers["content-type"] == "application/json"


def test_references_of_the_operator_are_filled_and_encoded() -> None:
    template = operation("http://h/${file:/run/key}/x?key=${env:KEY}&q={q}")
    asked: list[tuple[str, str]] = []

    def fill(reference: str, where: str) -> str:
        asked.append((reference, where))
        return "s/3&?#"

    sent = build_request(template, {"q": "${env:KEY}"}, fill)
    assert sent.target == "/s%2F3%26%3F%23/x?key=s%2F3%26%3F%23&q=%24%7Benv%3AKEY%7D"
    assert asked == [("${file:/run/key}", "httpTools.t.url"), ("${env:KEY}", "httpTools.t.url")]


VALUES = st.one_of(
    st.text(max_size=20),
    st.text("./\\%2eEfF?#&=:@ \r\n\x00", max_size=12),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.lists(st.text("./\\%", max_size=4), max_size=3),
)
TEMPLATES = st.sampled_from(
    [
        "http://shop.example:81/items/{a}",
        "http://shop.example:81/{a}/{b}",
        "http://shop.example:81/v1/{a}.json/x-{b}-y/",
        "http://shop.example:81/{a}{b}?fixed=1&c={c}",
        "http://shop.example:81?c={c}",
    ]
)


@given(TEMPLATES, st.sampled_from(["GET", "POST", "DELETE"]), VALUES, VALUES, VALUES, VALUES)
def test_no_value_changes_the_host_the_method_or_the_number_of_segments(
    url: str, method: str, a: Any, b: Any, c: Any, d: Any
) -> None:
    shape = parse_template(url)
    try:
        sent = request(url, method, a=a, b=b, c=c, d=d)
    except InvalidArgument:
        return
    path, _, query = sent.target.partition("?")
    segments = path.split("/")[1:]
    assert len(segments) == max(len(shape.path), 1)
    assert not {unquote(segment) for segment in segments} & {".", ".."}
    assert LITERAL.fullmatch(sent.target)
    assert "#" not in sent.target
    assert "\\" not in sent.target
    assert (sent.method, sent.origin.authority) == (method, "shop.example:81")
    assert all("\r" not in value and "\n" not in value for value in sent.headers.values())
    for literal, found in zip(shape.path, segments, strict=False):
        if all(piece.kind == "literal" for piece in literal):
            assert found == "".join(piece.text for piece in literal)
    assert {pair.partition("=")[0] for pair in query.split("&")} <= {"", "fixed", "a", "b", "c", "d"}

"""Secrets: references that lead somewhere, for those who may; values that never come back out."""

from __future__ import annotations

import base64
import html
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrove import Config
from toolgrove.config import SecretConfig
from toolgrove.errors import SecretOutOfScope, SecretUnset
from toolgrove.logs import HumanLine, scrubbing
from toolgrove.pool.secrets import MAX_FILE, Secrets

KEY = 'cana/ry+7f&"3<q\\9Z%4 é'


def secrets(folder: Path = Path("."), scopes: dict[str, list[str]] | None = None, **values: str) -> Secrets:
    declared = {name: SecretConfig(tools=tuple(tools)) for name, tools in (scopes or {}).items()}
    return Secrets(declared, environ=values, folder=folder)


def knowing(value: str, name: str = "KEY") -> Secrets:
    known = Secrets({}, environ={name: value}, folder=Path("."))
    known.fill(f"${{env:{name}}}", field="headers.x", user="t")
    return known


def test_every_reference_in_a_template_is_filled(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-a-file\n")
    known = secrets(tmp_path, USER="ada", PASS="lovelace")
    filled = known.fill("${env:USER}:${env:PASS}@${file:token}", field="headers.Authorization", user="t")
    assert filled == "ada:lovelace@from-a-file"


def test_text_without_a_reference_stays_as_it_is() -> None:
    for text in ("", "plain", "${HOME}", "$env:X", "${other:x}", "{id}", "${env:X"):
        assert secrets(X="value").fill(text, field="url", user="t") == text


def test_a_value_that_looks_like_a_reference_is_not_filled_again() -> None:
    assert secrets(X="${env:Y}", Y="inner").fill("${env:X}", field="f", user="t") == "${env:Y}"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("${env:NOT_SET}", "that variable is not set"),
        ("${env:EMPTY}", "that variable is empty"),
        ("${env:}", "it names nothing after the colon"),
        ("${file:missing}", "that file cannot be read (No such file or directory)"),
        ("${file:.}", "that is not a regular file"),
        ("${file:pipe}", "that is not a regular file"),
        ("${file:huge}", "that file is larger than 64 KiB"),
        ("${file:binary}", "that file is not UTF-8 text"),
        ("${file:blank}", "that file is empty"),
    ],
)
def test_a_reference_that_leads_to_nothing_names_the_field(tmp_path: Path, template: str, problem: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "huge").write_text("x" * (MAX_FILE + 1))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "blank").write_text("\n")
    with pytest.raises(SecretUnset) as refusal:
        secrets(tmp_path, EMPTY="").fill(
            f"Bearer {template}", field="httpTools.shop.headers.Authorization", user="shop"
        )
    error = refusal.value.to_json()["error"]
    assert error["code"] == "internal"
    assert error["reason"] == "secret_unset"
    assert error["field"] == "httpTools.shop.headers.Authorization"
    assert template in error["message"]
    assert problem in error["message"]
    assert str(tmp_path) not in error["message"]


class Ring:
    """A keyring in memory, in place of the package of that name."""

    def __init__(self, passwords: dict[tuple[str, str], str]) -> None:
        self.passwords = passwords
        self.asked = 0

    def get_password(self, service: str, name: str) -> str | None:
        self.asked += 1
        if name == "locked":
            raise RuntimeError("the ring holds hunter2-hunter2")
        return self.passwords.get((service, name))


def test_a_keyring_is_asked_once_per_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Ring({("toolgrove", "shop"): "from-the-ring"})
    monkeypatch.setitem(sys.modules, "keyring", ring)
    known = secrets()
    for _ in range(3):
        assert known.fill("${keyring:shop}", field="f", user="t") == "from-the-ring"
    assert ring.asked == 1
    assert known.scrub_text("it is from-the-ring") == "it is [secret shop]"
    with pytest.raises(SecretUnset, match="no password of that name for service 'toolgrove'"):
        known.fill("${keyring:other}", field="f", user="t")
    with pytest.raises(SecretUnset, match="cannot be read") as refusal:
        known.fill("${keyring:locked}", field="f", user="t")
    assert "hunter2" not in str(refusal.value)
    assert "RuntimeError" not in str(refusal.value)


def test_a_missing_keyring_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(SecretUnset, match=r"install toolgrove\[keyring\]"):
        secrets().fill("${keyring:shop}", field="f", user="t")


@pytest.mark.requirement("CALL-003-06")
@pytest.mark.parametrize(
    ("tools", "user", "allowed"),
    [
        (["get_item", "shop_*"], "get_item", True),
        (["get_item", "shop_*"], "shop_list", True),
        (["get_item", "shop_*"], "get_items", False),
        (["get_item", "shop_*"], "evil", False),
        ([], "get_item", False),
        (["*"], "anything", True),
        # A whole server starts with its secrets, so every tool of it must be covered.
        (["wiki_*"], "wiki_*", True),
        (["wi*"], "wiki_*", True),
        (["*"], "wiki_*", True),
        (["wiki_search"], "wiki_*", False),
        (["wiki_s*"], "wiki_*", False),
        (["w*_*"], "wiki_*", False),
        (["wiki2_*"], "wiki_*", False),
    ],
)
def test_a_declared_secret_is_for_the_tools_that_it_names(tools: list[str], user: str, allowed: bool) -> None:
    known = secrets(scopes={"TOKEN": tools}, TOKEN="the-token-value")
    if allowed:
        assert known.fill("${env:TOKEN}", field="headers.x", user=user) == "the-token-value"
        return
    with pytest.raises(SecretOutOfScope) as refusal:
        known.fill("${env:TOKEN}", field="headers.x", user=user)
    error = refusal.value.to_json()["error"]
    assert (error["code"], error["reason"], error["field"]) == ("forbidden", "secret_scope", "headers.x")
    assert "the-token-value" not in json.dumps(error)


def test_a_scope_holds_for_every_kind_of_reference(tmp_path: Path) -> None:
    (tmp_path / "TOKEN").write_text("secret in a file")
    known = secrets(tmp_path, scopes={"TOKEN": ["a"]})
    assert known.fill("${file:TOKEN}", field="f", user="a") == "secret in a file"
    with pytest.raises(SecretOutOfScope):
        known.fill("${file:TOKEN}", field="f", user="b")


def _pairs(data: bytes) -> list[bytes]:
    return [data[at : at + 2] for at in range(0, len(data), 2)]


def spellings(value: str) -> dict[str, str]:
    data = value.encode()
    escaped = json.dumps(value)[1:-1]
    return {
        "plain": value,
        "base64": base64.b64encode(data).decode(),
        "base64 url": base64.urlsafe_b64encode(data).decode(),
        "base64 bare": base64.b64encode(data).decode().rstrip("="),
        "base64 within 0": base64.b64encode(b"abc" + data + b"xyz").decode(),
        "base64 within 1": base64.b64encode(b"user" + data + b":1").decode(),
        "base64 within 2": base64.urlsafe_b64encode(b"users" + data).decode(),
        "base64 in a form": quote(base64.b64encode(data).decode(), safe=""),
        "base64 wrapped": base64.encodebytes(b"0" * 50 + data + b"1" * 50).decode(),
        "quote": quote(value, safe=""),
        "quote path": quote(value),
        "quote plus": quote_plus(value),
        "quote lower": quote(value, safe="").lower(),
        "quote all": "".join(f"%{byte:02X}" for byte in data),
        "quote all lower": "".join(f"%{byte:02x}" for byte in data),
        "quote twice": quote(quote(value, safe=""), safe=""),
        "json": escaped,
        "json utf-8": json.dumps(value, ensure_ascii=False)[1:-1],
        "json all": "".join(f"\\u{pair.hex()}" for pair in _pairs(value.encode("utf-16-be"))),
        "json slash": escaped.replace("/", "\\/"),
        "json in json": json.dumps(escaped)[1:-1],
        "python": repr(value)[1:-1],
        "bytes": repr(data)[2:-1],
        "html": html.escape(value),
        "html numbers": "".join(f"&#{ord(letter)};" for letter in value),
        "html hex": "".join(f"&#x{ord(letter):X};" for letter in value),
        "hex": data.hex(),
        "hex upper": data.hex().upper(),
        "lower": value.lower(),
        "upper": value.upper(),
    }


@pytest.mark.parametrize("spelling", spellings(KEY))
def test_a_value_is_scrubbed_in_every_spelling(spelling: str) -> None:
    text = spellings(KEY)[spelling]
    shown = knowing(KEY).scrub_text(f"before {text} after")
    assert "[secret KEY]" in shown
    assert text not in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")
    whole = "within" in spelling or "wrapped" in spelling
    assert whole or shown.replace("=", "").replace("%3D", "") == "before [secret KEY] after"


@given(
    value=st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Z")), min_size=8, max_size=40),
    before=st.text("abc%\\&;= \n", max_size=12),
    after=st.text("xyz%\\&;= \n", max_size=12),
    spelling=st.sampled_from(sorted(set(spellings("x")) - {"lower", "upper", "quote lower"})),
)
def test_no_spelling_of_any_value_gets_through(value: str, before: str, after: str, spelling: str) -> None:
    text = spellings(value)[spelling]
    shown = knowing(value).scrub_text(f"{before} {text} {after}")
    assert "[secret KEY]" in shown
    assert value not in shown
    assert text not in shown


@given(value=st.text("abAB01/+", min_size=6, max_size=20), before=st.binary(max_size=20), after=st.binary(max_size=20))
def test_base64_of_a_longer_text_around_a_value_gives_nothing_away(value: str, before: bytes, after: bytes) -> None:
    encoded = base64.b64encode(before + value.encode() + after).decode()
    assert "[secret KEY]" in knowing(value).scrub_text(encoded)


@given(st.text("ab%\\&;#xu0 \n=/", max_size=60))
def test_text_without_a_secret_is_not_touched(text: str) -> None:
    assert knowing("not-in-the-alphabet").scrub_text(text) == text


def test_lines_of_a_long_secret_are_scrubbed_one_by_one() -> None:
    lines = ["-----BEGIN KEY-----", "MIIEvQIBADANBgkqhkiG9w0", "short", "BAQEFAASCBKcwggSjAgEAAo", "-----END KEY-----"]
    known = knowing("\n".join(lines), "PEM")
    assert known.scrub_text(f"line 2 is {lines[1]}!") == "line 2 is [secret PEM]!"
    assert known.scrub_text("a short note about -----BEGIN KEY-----") == "a short note about -----BEGIN KEY-----"
    assert known.scrub_text(json.dumps("\n".join(lines))) == '"[secret PEM]"'


def test_secrets_that_overlap_are_both_scrubbed() -> None:
    known = secrets(A="first-half-", B="half-second")
    known.fill("${env:A}${env:B}", field="f", user="t")
    assert known.scrub_text("x first-half-second y") == "x [secret A] y"


def test_the_longer_of_two_secrets_wins() -> None:
    known = secrets(A="token", B="token-with-more")
    known.fill("${env:A}${env:B}", field="f", user="t")
    shown = known.scrub_text("token-with-more and token")
    assert "more" not in shown
    assert shown.endswith("and [secret A]")


def test_a_json_value_is_scrubbed_with_its_keys_and_numbers() -> None:
    known = secrets(A="key-value-A", PIN="48151623")
    known.fill("${env:A}${env:PIN}", field="f", user="t")
    value = {
        "key-value-A": 1,
        "[secret A]": 2,
        "list": ["x key-value-A", {"deep": "key-value-A"}, 48151623, True, None, 1.5],
    }
    assert known.scrub(value) == {
        "[secret A]": 1,
        "[secret A] 2": 2,
        "list": ["x [secret A]", {"deep": "[secret A]"}, "[secret PIN]", True, None, 1.5],
    }


def test_a_short_value_ruins_no_text_and_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    known = knowing("1")
    assert known.scrub_text("1 of 11") == "1 of 11"
    assert "${env:KEY} has fewer than 4 characters" in caplog.text


def test_a_declared_secret_is_hidden_before_its_first_use() -> None:
    assert secrets(scopes={"TOKEN": []}, TOKEN="the-token-value").scrub_text("the-token-value") == "[secret TOKEN]"


def test_a_changed_configuration_still_hides_what_was_read_before() -> None:
    known = knowing("the-old-value")
    known.rescope({"KEY": SecretConfig(tools=("x",))})
    assert known.scrub_text("the-old-value") == "[secret KEY]"
    with pytest.raises(SecretOutOfScope):
        known.fill("${env:KEY}", field="headers.x", user="t")


def test_a_key_written_into_the_settings_can_be_hidden_too() -> None:
    known = secrets()
    known.hide("written-into-the-file", name="env.API_KEY")
    assert known.scrub_text("written-into-the-file") == "[secret env.API_KEY]"


def test_credentials_that_stand_in_imported_settings_are_hidden_and_other_settings_are_not() -> None:
    known = secrets()
    credentials = {
        "GITHUB_TOKEN": "ghp_0123456789ab",
        "OPENAI_API_KEY": "sk-0123456789abc",
        "Authorization": "Bearer 0123456789.abc",
        "X-Api-Key": "0123456789-xyz",
        "DB_PASSWORD": "correct-horse-battery",
        "AWS_SECRET_ACCESS_KEY": "abcdefghijkl/mn",
    }
    others = {
        "HOME": "/home/of/somebody",
        "MAX_TOKENS": "100000000000",
        "TOKEN_LIMIT": "4096",
        "KEYBOARD_LAYOUT": "de-latin1-nodeadkeys",
        "MY_TOKEN": "${env:MY_TOKEN_OF_LONG_NAME}",
    }
    known.hide_settings({**credentials, **others})
    for name, value in credentials.items():
        word = value.rpartition(" ")[2]
        assert known.scrub_text(f"it is {word}!") == f"it is [secret {name}]!"
    for value in others.values():
        assert known.scrub_text(value) == value


def test_text_with_too_many_escapes_to_check_is_withheld() -> None:
    shown = knowing("the-value").scrub_text("\\" * 400_000)
    assert shown == "[secret unknown: too many escapes to check]"


@pytest.mark.parametrize(
    "text", [" " * 10**6 + "x\n", "%é" * 10**5, "&" * 10**5, "\\u" * 10**5, "\xff" * 10**6, "\n" * 10**5]
)
def test_a_text_made_to_be_slow_is_checked_all_the_same(text: str) -> None:
    """Whatever took the square of its length here would not come back today."""
    known = knowing("the-value")
    assert known.scrub_text(text) == text
    stream = known.stream()
    assert stream.feed(text) + stream.end() == text
    assert known.messages().feed(text) == text


@given(value=st.sampled_from(sorted(spellings(KEY).values())), data=st.data())
def test_a_stream_never_shows_a_secret_however_it_is_cut(value: str, data: st.DataObject) -> None:
    text = f"begin {value} middle {value} end"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=8)))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    known = knowing(KEY)
    stream = known.stream()
    shown = [stream.feed(chunk) for chunk in chunks]
    assert "".join(shown) + stream.end() == known.scrub_text(text)
    messages = known.messages()
    told = "".join(messages.feed(chunk) for chunk in chunks)
    assert value not in told
    assert KEY not in told


@given(st.lists(st.text("abk \\%&", max_size=6), max_size=8))
def test_a_stream_without_secrets_is_what_came_in(chunks: list[str]) -> None:
    stream = knowing("kkkk-the-key").stream()
    assert "".join([*map(stream.feed, chunks), stream.end()]) == "".join(chunks)


def test_a_stream_holds_back_no_more_than_it_must() -> None:
    stream = knowing("sk-live-value").stream()
    assert stream.feed("all of this is clear") == "all of this is clear"
    assert stream.feed(" but not sk-li") == " but not "
    assert stream.feed("st") == "sk-list"


def test_messages_are_shown_at_once_and_lose_only_what_continues_a_secret() -> None:
    messages = knowing("sk-live-value").messages()
    assert messages.feed("tasks") == "tasks"
    assert messages.feed("the key is sk-live") == "the key is [secret KEY]"
    assert messages.feed("-val") == "[secret KEY]"
    assert messages.feed("ue, done") == "[secret KEY], done"
    assert messages.feed("next") == "next"


def test_a_message_hides_a_secret_whatever_the_one_before_it_ended_with() -> None:
    escaped = "".join(f"\\x{ord(one):02x}" for one in "sk-live-value")
    for before in ("", "a path ends with \\", "half of one: %", "half of one: \\x7"):
        messages = knowing("sk-live-value").messages()
        messages.feed(before)
        assert messages.feed(f"{escaped} it is") == "[secret KEY] it is"


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 60))
def test_the_beginning_of_a_text_never_ends_in_half_a_secret(before: str, after: str, most: int) -> None:
    known = knowing("sk-live-value")
    shown = known.beginning(f"{before}sk-live-value{after}", most)
    if not (before + after).count("s"):
        assert "sk" not in shown
    assert known.beginning(before, len(before)) == known.scrub_text(before)


def test_nothing_shows_a_value_when_it_is_printed() -> None:
    known = secrets(scopes={"TOKEN": ["t"]}, TOKEN="the-token-value")
    known.fill("${env:TOKEN}", field="f", user="t")
    for shown in (repr(known), str(known), repr(vars(known)["_scrubber"]), repr(known.stream())):
        assert "the-token-value" not in shown
    config = Config.model_validate({"secrets": {"TOKEN": {"tools": ["t"]}}})
    assert "the-token-value" not in repr(config)


def test_log_records_are_scrubbed_whoever_writes_them(caplog: pytest.LogCaptureFixture) -> None:
    known = knowing("sk-live-value")
    elsewhere = logging.getLogger("somebody.elses.http.client")
    with scrubbing(known.scrub_text):
        elsewhere.warning("GET https://x/?key=%s", "sk-live-value")
        logging.getLogger("toolgrove.call").error("%r", {"a": base64.b64encode(b"sk-live-value")})
        try:
            raise RuntimeError("it was sk-live-value")
        except RuntimeError:
            elsewhere.exception("failed with sk-live-value", stack_info=True)
    assert len(caplog.records) == 3
    for record in caplog.records:
        shown = logging.Formatter("%(message)s").format(record) + repr(record.__dict__)
        assert "sk-live-value" not in shown
        assert base64.b64encode(b"sk-live-value").decode() not in shown
    assert "RuntimeError: it was [secret KEY]" in caplog.text
    elsewhere.warning("afterwards sk-live-value is not our business")
    assert "afterwards sk-live-value" in caplog.text


def test_log_records_without_a_secret_keep_their_exception(caplog: pytest.LogCaptureFixture) -> None:
    with scrubbing(knowing("sk-live-value").scrub_text), scrubbing(knowing("another-value").scrub_text):
        try:
            raise RuntimeError("harmless")
        except RuntimeError:
            logging.getLogger("toolgrove.call").exception("call %s failed", 1)
    assert caplog.records[0].args == (1,)
    assert caplog.records[0].exc_info is not None


def test_a_record_cannot_be_forged_by_what_it_quotes() -> None:
    record = logging.LogRecord(
        "toolgrove", logging.INFO, "x", 1, "tool said %s", ("a\n2026 INFO approved\r\x1b[2J\u2028",), None
    )
    first, second = HumanLine().format(record).split("\n")
    assert first.endswith("  tool said a")
    assert second == "          2026 INFO approved\\r\\u001b[2J\\u2028"


def test_agent_arguments_are_never_filled() -> None:
    """There is no way from a call to `fill`: only the fields of the configuration go through it."""
    known = knowing("sk-live-value")
    argument: Any = {"x": "${env:KEY}"}
    assert known.scrub(argument) == argument

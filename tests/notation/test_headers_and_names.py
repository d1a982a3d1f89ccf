"""What a name or a header says, read one way wherever it is met."""

from __future__ import annotations

import pytest

from toolgrove.notation.retry_after import LONGEST, seconds_to_wait
from toolgrove.notation.secret_names import names_a_secret

NOON = 1_767_268_800.0  # Thu, 01 Jan 2026 12:00:00 GMT


@pytest.mark.parametrize(
    "name",
    [
        *("GITHUB_PAT", "PAT", "my-pat", "API_KEY", "apiKey", "apikey", "X-Api-Key", "STRIPE_KEY", "SSH_KEY_ID"),
        *("Authorization", "Proxy-Authorization", "X-Auth", "AUTH_TOKEN", "OAUTH2_CLIENT", "X-Authentication"),
        *("token", "accessToken", "GITHUB_TOKEN", "PGPASSWORD", "db_passwd", "MYSQL_PWD", "SSH_PASSPHRASE"),
        *("clientSecret", "SECRET", "Cookie", "set-cookie", "GOOGLE_CREDENTIALS", "AWS_ACCESS_KEY_ID"),
    ],
)
def test_what_usually_holds_a_secret_is_known_by_its_name(name: str) -> None:
    assert names_a_secret(name)


@pytest.mark.parametrize(
    "name", ["PATH", "PATTERN", "HOME", "AUTHOR", "GIT_AUTHOR_NAME", "KEYBOARD", "TOKENIZERS_PARALLELISM", "MAX_TOKENS"]
)
def test_a_name_that_only_begins_alike_says_nothing(name: str) -> None:
    assert not names_a_secret(name)


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("5", 5.0),
        (" 0 ", 0.0),
        ("999999999", LONGEST),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 1.0),
        ("Thu, 01 Jan 2032 12:00:00 GMT", LONGEST),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("soon", None),
        ("9" * 20, None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
    ],
)
def test_a_server_says_in_seconds_or_by_a_date_how_long_to_wait(header: str, wait: float | None) -> None:
    assert seconds_to_wait(header, now=NOON) == wait


def test_a_date_says_nothing_without_a_clock() -> None:
    assert seconds_to_wait("Thu, 01 Jan 2026 12:00:30 GMT", now=None) is None
    assert seconds_to_wait("5", now=None) == 5.0

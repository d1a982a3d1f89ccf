"""Tokens, logins and deeds, wherever they are kept; approvals and pins have theirs in tests/pool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from grove_kit import ManualClock
from services.state import STATES, state_database
from toolgrove.store.state import (
    OPERATOR,
    Deeds,
    Login,
    Logins,
    MemoryDeeds,
    MemoryLogins,
    MemoryTokens,
    SqliteDeeds,
    SqliteLogins,
    SqliteTokens,
    StateFile,
    Tokens,
    hashed,
    token_id,
)
from toolgrove.store.state.postgres import PostgresDeeds, PostgresLogins, PostgresTokens

LOGIN = Login(
    server="wiki",
    url="https://wiki.example/mcp",
    resource="https://wiki.example/mcp",
    issuer="https://id.example",
    token_endpoint="https://id.example/token",
    client_id="grove",
    access_token="first \x00 \ud800",
    made_at=1.5,
)


@dataclass(frozen=True)
class Kept:
    tokens: Tokens
    logins: Logins
    deeds: Deeds
    clock: ManualClock


@pytest.fixture(params=STATES)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    clock = ManualClock()
    if request.param == "memory":
        deeds = MemoryDeeds()
        yield Kept(MemoryTokens(clock, deeds), MemoryLogins(clock, deeds), deeds, clock)
    elif request.param == "sqlite":
        with StateFile(tmp_path / "state.db") as file:
            yield Kept(SqliteTokens(file, clock), SqliteLogins(file, clock), SqliteDeeds(file), clock)
    else:
        with state_database(request) as shared:
            yield Kept(PostgresTokens(shared, clock), PostgresLogins(shared, clock), PostgresDeeds(shared), clock)


def test_every_store_keeps_several_tokens_of_one_holder(kept: Kept) -> None:
    tokens = kept.tokens
    made = [hashed(tokens.issue(holder)) for holder in ("editor", "editor", OPERATOR)]
    assert tokens.holders() == dict(zip(made, ("editor", "editor", OPERATOR), strict=True))
    tokens.revoke(made[0])
    tokens.revoke(made[0])
    assert tokens.holders().keys() == {*made[1:]}
    last = hashed(tokens.issue("editor", replace=True))
    assert tokens.holders() == {made[2]: OPERATOR, last: "editor"}


def test_a_token_whose_time_is_over_is_nobodys(kept: Kept) -> None:
    tokens, clock = kept.tokens, kept.clock
    lasting, short = hashed(tokens.issue("editor")), hashed(tokens.issue("editor", lifetime=60))
    assert tokens.holders().keys() == {lasting, short}
    assert tokens.expiries() == {short: clock.wall() + 60}
    clock.now += 60
    assert tokens.holders().keys() == {lasting}
    assert tokens.holders(also_expired=True).keys() == {lasting, short}
    tokens.revoke(short)
    assert tokens.expiries() == {}


def test_the_first_use_of_a_token_is_noted_once(kept: Kept) -> None:
    made = hashed(kept.tokens.issue("editor", by="grace"))
    assert set(kept.tokens.unused()) == {made}
    kept.tokens.use(made, source="10.0.0.1")
    kept.tokens.use(made, source="10.0.0.2")
    assert set(kept.tokens.unused()) == set()
    assert [(deed.operation, deed.by, deed.details) for _, deed in kept.deeds.waiting()] == [
        ("token.made", "grace", {"token": token_id(made)}),
        ("token.first_used", "editor", {"token": token_id(made), "from": "10.0.0.1"}),
    ]


def test_a_login_is_renewed_only_in_the_place_of_the_one_that_was_known(kept: Kept) -> None:
    logins = kept.logins
    assert logins.of("wiki") is None
    logins.begin(LOGIN, by="grace")
    assert logins.of("wiki") == LOGIN
    newer, other = replace(LOGIN, access_token="second"), replace(LOGIN, access_token="third")
    assert logins.renew(LOGIN, newer) == newer
    assert logins.renew(LOGIN, other) == newer
    assert logins.forget("wiki", by="grace") == newer
    assert logins.forget("wiki", by="grace") is None
    assert logins.renew(newer, other) is None
    assert [deed.operation for _, deed in kept.deeds.waiting()] == ["login.made", "login.forgotten"]


def test_deeds_wait_in_order_until_they_are_on_record(kept: Kept) -> None:
    for holder in ("a", "b", "c"):
        kept.tokens.issue(holder)
    waiting = kept.deeds.waiting()
    assert [deed.agent for _, deed in waiting] == ["a", "b", "c"]
    kept.deeds.recorded(waiting[1][0])
    assert [deed.agent for _, deed in kept.deeds.waiting()] == ["c"]
    kept.tokens.issue("d")
    assert [deed.agent for _, deed in kept.deeds.waiting()] == ["c", "d"]

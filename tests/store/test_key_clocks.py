"""Idempotency keys where the machines' clocks disagree: a key has one effect in its lifetime, whoever asks where.

What is drawn: how far each replica's clock is off, who uses which key, how much older all keys get, and who comes anew.
A naive table of ages judges. Keys grow older by their rows, since the database's own clock cannot be moved.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from random import Random
from typing import Any

import pytest

from grove_kit import ManualClock
from services.postgres import Postgres
from store_kit import Scribe
from toolgrove.store.journal import KeyLimits, KeyTaken
from toolgrove.store.journal.postgres.journal import PostgresJournal
from toolgrove.store.postgres import DatabaseAddress

pytestmark = pytest.mark.anyio
LIFETIME = 300.0
"""Short, so that keys are swept often; a step takes milliseconds, and ages stay a minute away from it."""
STEP = 120.0
DAY = 86_400.0
NAMES = [f"k{number}" for number in range(6)]


async def opened(stack: AsyncExitStack, address: DatabaseAddress, random: Random) -> PostgresJournal:
    """A replica on a machine whose clock is off."""
    clock = ManualClock()
    clock.now += random.choice((0.0, 90.0, -90.0, 25 * 3600.0, -DAY, 40 * DAY))
    journal = PostgresJournal(address, clock, limits=KeyLimits(lifetime=LIFETIME))
    await journal.open()
    stack.push_async_callback(journal.close)
    return journal


@pytest.mark.parametrize("seed", range(3))
async def test_a_key_has_one_effect_in_its_lifetime_whatever_the_clocks_of_the_replicas_say(
    postgres: Postgres, database: str, seed: int
) -> None:
    random, scribe, address = Random(seed), Scribe(), DatabaseAddress.of(database)
    ages: dict[str, float] = {}
    effects: dict[str, int] = {}
    async with AsyncExitStack() as stack:
        replicas = [await opened(stack, address, random) for _ in range(2)]
        for number in range(60):
            doing = random.choice(("use", "use", "use", "age", "come"))
            at = random.randrange(2)
            if doing == "use":
                name = random.choice(NAMES)
                is_free = ages.get(name, LIFETIME) >= LIFETIME
                try:
                    await replicas[at].append(scribe.key(name, number))
                except KeyTaken:
                    assert not is_free, (seed, number, name, ages)
                else:
                    assert is_free, (seed, number, name, ages)
                    ages[name], effects[name] = 0.0, number
            elif doing == "age":
                postgres.ask(f"UPDATE {address.schema}.idempotency SET at = at - {STEP}")
                ages = {name: age + STEP for name, age in ages.items()}
            elif doing == "come":
                replicas[at] = await opened(stack, address, random)
            for name in NAMES:
                kept = await replicas[at].recall("ann", name)
                found: Any = None if kept is None else kept.result
                assert found == (effects[name] if ages.get(name, LIFETIME) < LIFETIME else None), (seed, number)

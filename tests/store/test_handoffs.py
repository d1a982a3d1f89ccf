"""An answer that one replica hands to another: one outcome, or an honest word about it, and no row is left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from grove_kit import config
from toolgrove import Grove
from toolgrove.store.postgres import DatabaseAddress
from toolgrove.store.postgres.connecting import connect
from toolgrove.store.state import HandoffLost, Handoffs
from waiting import DEADLINE, eventually

pytestmark = [pytest.mark.anyio, pytest.mark.services]


Rows = Callable[[], list[bool]]
Replica = Callable[[], AbstractAsyncContextManager[Handoffs]]


@pytest.fixture
def replica(database: str, tmp_path: Path) -> Replica:
    """Another replica of one project."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Handoffs]:
        async with Grove(config(workspace={"store": database}, state=str(tmp_path / "both"))) as grove:
            assert grove.handoffs is not None
            yield grove.handoffs

    return opened


@pytest.fixture
def rows(database: str) -> Rows:
    """Whether each handoff that there is was taken."""

    def read() -> list[bool]:
        with connect(DatabaseAddress.of(database)) as connection:
            return [taken for (taken,) in connection.execute("SELECT taken FROM handoff").fetchall()]

    return read


async def never(agent: str, answer: str) -> str:
    await anyio.sleep_forever()
    raise AssertionError


async def test_each_answer_is_taken_once_and_gets_its_own_outcome(replica: Replica, rows: Rows) -> None:
    taken: list[tuple[str, str]] = []
    outcomes: dict[str, str | None] = {}

    async def go_on(agent: str, answer: str) -> str:
        taken.append((agent, answer))
        return answer.upper()

    with anyio.fail_after(2 * DEADLINE):
        async with replica() as here, replica() as there, anyio.create_task_group() as tasks:

            async def hand(answer: str) -> None:
                outcomes[answer] = await here.hand(there.here, "ann", answer)

            tasks.start_soon(there.follow, go_on)
            async with anyio.create_task_group() as handing:
                for answer in ("yes", "no", "perhaps"):
                    handing.start_soon(hand, answer)
            tasks.cancel_scope.cancel()
    assert outcomes == {"yes": "YES", "no": "NO", "perhaps": "PERHAPS"}
    assert sorted(taken) == [("ann", "no"), ("ann", "perhaps"), ("ann", "yes")]
    assert rows() == []


async def test_a_call_is_cancelled_when_nobody_waits_for_it_at_the_other_replica(replica: Replica, rows: Rows) -> None:
    began, cancelled = anyio.Event(), anyio.Event()

    async def go_on(agent: str, answer: str) -> str:
        began.set()
        try:
            return await never(agent, answer)
        finally:
            cancelled.set()

    with anyio.fail_after(2 * DEADLINE):
        async with replica() as here, replica() as there, anyio.create_task_group() as tasks:
            tasks.start_soon(there.follow, go_on)
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(here.hand, there.here, "ann", "yes")
                await began.wait()
                waiting.cancel_scope.cancel()
            await cancelled.wait()
            tasks.cancel_scope.cancel()
    assert rows() == []


async def test_an_answer_that_was_not_taken_by_a_replica_that_left_has_no_effect(replica: Replica, rows: Rows) -> None:
    outcomes: list[str | None] = []

    with anyio.fail_after(2 * DEADLINE):
        async with replica() as here, anyio.create_task_group() as handing:

            async def hand(holder: str) -> None:
                outcomes.append(await here.hand(holder, "ann", "yes"))

            async with replica() as there:
                handing.start_soon(hand, there.here)
                await eventually(lambda: rows() == [False])
    assert outcomes == [None]
    assert rows() == []


async def test_who_waits_for_a_replica_that_left_with_the_answer_hears_that_it_is_lost(
    replica: Replica, rows: Rows
) -> None:
    lost: list[HandoffLost] = []

    with anyio.fail_after(2 * DEADLINE):
        async with replica() as here, anyio.create_task_group() as handing:

            async def hand(holder: str) -> None:
                with pytest.raises(HandoffLost) as raised:
                    await here.hand(holder, "ann", "yes")
                lost.append(raised.value)

            async with replica() as there, anyio.create_task_group() as tasks:
                handing.start_soon(hand, there.here)
                tasks.start_soon(there.follow, never)
                await eventually(lambda: rows() == [True])
                tasks.cancel_scope.cancel()
    assert len(lost) == 1
    assert rows() == []

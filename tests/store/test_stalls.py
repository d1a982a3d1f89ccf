"""A store that another program holds, and files that go away under a gateway: told at once, and nothing is lost."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from faults.kit import Journal, fake
from grove_kit import Hand, ManualClock, hand
from store_kit import EDITORS, stored
from toolgrove import Config, Grove
from toolgrove.project_state import ProjectState
from toolgrove.store.journal import SqliteJournal
from toolgrove.store.journal.tables.stall import PATIENCE
from toolgrove.store.state import OPERATOR
from toolgrove.store.state.sqlite.file import PATIENCE as STATE_PATIENCE
from waiting import DEADLINE, eventually

pytestmark = pytest.mark.anyio
ADD = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {"a": 1}}


@contextmanager
def held(path: Path) -> Iterator[sqlite3.Connection]:
    """Somebody else has begun to write, and does not end."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


@asynccontextmanager
async def asked(grove: Grove) -> AsyncIterator[httpx2.AsyncClient]:
    """The gateway of a grove."""
    app = grove.asgi_app()
    headers = {"Authorization": f"Bearer {grove.tokens.issue(OPERATOR, by='the test')}"}
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as http,
    ):
        yield http


async def unready(http: httpx2.AsyncClient) -> list[str]:
    """Why the gateway is not ready, as soon as it is not; it lives all the same."""
    with anyio.fail_after(DEADLINE):
        while (response := await http.get("/ready")).status_code == 200:
            await anyio.sleep(0.02)
    assert response.status_code == 503
    assert (await http.get("/health")).json() == {"status": "degraded"}
    form = response.json()
    assert form["status"] == "unready"
    troubles: list[str] = form["troubles"]
    return troubles


async def ready(http: httpx2.AsyncClient) -> None:
    with anyio.fail_after(DEADLINE):
        while (await http.get("/ready")).json() != {"status": "ready", "troubles": []}:
            await anyio.sleep(0.02)


async def children(reader: Hand, parent: str = "root") -> int:
    return int((await reader.ok("get_node", nodeId=parent))["childrenCount"])


async def test_writers_share_one_wait_for_a_locked_store_and_readers_have_none(tmp_path: Path) -> None:
    path, clock = tmp_path / "grove.db", ManualClock()
    answers: list[dict[str, Any]] = []
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(stored(path, concurrency="node"), clock=clock) as grove:
            ann, bob = await hand(grove, "ann"), await hand(grove, "bob")
            version = await ann.version()

            async def write() -> None:
                answers.append(await ann("add_child", **ADD, versionToken=version))

            with held(path):
                async with anyio.create_task_group() as writing:
                    for _ in range(3):
                        writing.start_soon(write)
                    await eventually(lambda: grove.troubles == ("store_locked",))
                    assert await children(bob) == 0  # while the writers wait; the clock stands still
                    clock.now += PATIENCE / 2
                    writing.start_soon(write)  # it has no wait of its own
                    assert await children(bob) == 0
                    assert not answers
                    clock.now += PATIENCE / 2
                assert len(answers) == 4
                await write()  # the wait is over for all who come later
                for answer in answers:
                    error = answer["error"]
                    assert (error["code"], error["reason"]) == ("internal", "journal_unavailable")
                    assert error["retryAfter"] > 0
                    assert "nothing was changed" in error["message"]
                    assert "safe" in error["message"]
            await eventually(lambda: grove.troubles == ())
            await ann.ok("add_child", **ADD, versionToken=version)
            assert await children(bob) == 1
            records = [one["outcome"] for one in grove.audit if one["operation"] == "add_child"]
            assert records == ["failure"] * 5 + ["success"], "what could not be written then is written later"
            assert (await grove.audit_log.verify()).breach is None


async def test_writers_that_waited_for_a_lock_go_on_when_it_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "grove.db"
    answers: list[dict[str, Any]] = []
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(stored(path, concurrency="node"), clock=ManualClock()) as grove:
            ann, bob = await hand(grove, "ann"), await hand(grove, "bob")
            parents = [(await ann.ok("add_child", **ADD))["nodeId"] for _ in range(5)]
            version = await ann.version()

            async def write(parent: str) -> None:
                answers.append(await ann("add_child", **{**ADD, "parentNodeId": parent}, versionToken=version))

            async with anyio.create_task_group() as writing:
                with held(path):
                    for parent in parents:
                        writing.start_soon(write, parent)
                    await eventually(lambda: grove.troubles == ("store_locked",))
                    assert [await children(bob, parent) for parent in parents] == [0] * 5
                    assert not answers
            assert len({answer["nodeId"] for answer in answers}) == 5, answers
            assert [await children(bob, parent) for parent in parents] == [1] * 5
        async with Grove(stored(path)) as grove:
            assert [await children(await hand(grove, "bob"), parent) for parent in parents] == [1] * 5


async def test_a_call_that_must_be_on_record_first_is_not_sent_while_the_store_is_locked(tmp_path: Path) -> None:
    path, clock, journal = tmp_path / "grove.db", ManualClock(), Journal(tmp_path / "journal")
    settings = {
        "workspace": {"store": f"sqlite:{path}"},
        "agents": EDITORS | {"ann": {"role": "editor", "tools": ["*"]}},
    }
    config = Config.model_validate({**settings, "mcpServers": {"up": fake(journal=journal)}, "startupBudget": 30})
    answers: list[dict[str, Any]] = []
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(config, clock=clock) as grove:
            ann = await grove.agent("ann")

            async def erase() -> None:
                answers.append(await ann.call("up_erase"))

            async with anyio.create_task_group() as calling:
                with held(path):
                    calling.start_soon(erase)
                    await eventually(lambda: grove.troubles == ("store_locked",))
                    clock.now += PATIENCE
                    await eventually(lambda: answers)
            (refused,) = answers
            assert refused["error"]["reason"] == "journal_unavailable"
            assert refused["error"]["retryAfter"] > 0
            assert journal.received("tools/call", "erase") == 0
            await eventually(lambda: grove.troubles == ())
            assert "error" not in await ann.call("up_erase")


async def test_a_locked_store_shows_though_nobody_writes(tmp_path: Path) -> None:
    path = tmp_path / "grove.db"
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(stored(path)) as grove, asked(grove) as http:
            await ready(http)
            with held(path):
                assert await unready(http) == ["store_locked"]
                assert (await http.get("/api/audit")).status_code == 200
            await ready(http)
            assert (await http.get("/health")).json() == {"status": "ok"}


async def test_a_gateway_whose_store_is_locked_can_be_stopped(tmp_path: Path) -> None:
    path = tmp_path / "grove.db"
    with anyio.fail_after(2 * DEADLINE), held_later(path) as hold:
        async with Grove(stored(path)) as grove:
            await (await hand(grove, "ann")).ok("add_child", **ADD)
            hold()
            await eventually(lambda: grove.troubles == ("store_locked",))


@contextmanager
def hanging(grove: Grove) -> Iterator[threading.Event]:
    """The disk does not come back from the writer's next step until the event is set."""
    journal = grove._journal
    assert isinstance(journal, SqliteJournal)
    assert journal._opened is not None
    back = threading.Event()

    def step() -> int:
        back.wait()
        return 0

    journal._opened.connection.set_progress_handler(step, 1)
    try:
        yield back
    finally:
        back.set()


async def test_a_disk_that_hangs_in_a_write_is_told_to_all_who_come_after_it(tmp_path: Path) -> None:
    path, clock = tmp_path / "grove.db", ManualClock()
    first: list[dict[str, Any]] = []
    later: list[dict[str, Any]] = []
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(stored(path, concurrency="node"), clock=clock) as grove, asked(grove) as http:
            ann, bob = await hand(grove, "ann"), await hand(grove, "bob")
            version = await ann.version()
            await ready(http)

            async def write(answers: list[dict[str, Any]]) -> None:
                answers.append(await ann("add_child", **ADD, versionToken=version))

            async def read(answers: list[dict[str, Any]]) -> None:
                answers.append(await bob("get_node", nodeId="root"))

            async with anyio.create_task_group() as writing:
                with hanging(grove):
                    writing.start_soon(write, first)
                    assert await unready(http) == ["store_locked"]
                    writing.start_soon(write, later)
                    writing.start_soon(read, later)  # it saw what nobody knows to be kept
                    await anyio.wait_all_tasks_blocked()
                    assert not later
                    clock.now += PATIENCE
                    await eventually(lambda: len(later) == 2)
                    for answer in later:
                        assert answer["error"]["reason"] == "journal_unavailable"
                        assert answer["error"]["retryAfter"] > 0
                        assert "safe" in answer["error"]["message"]
                    assert not first
            (kept,) = first
            await ready(http)
            assert await children(bob) == int("error" not in kept), "what was answered is what happened"
            await ann.ok("add_child", **ADD, versionToken=await ann.version())
            assert (await grove.audit_log.verify()).breach is None


async def test_a_gateway_whose_disk_hangs_can_be_stopped(tmp_path: Path) -> None:
    path = tmp_path / "grove.db"
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(stored(path)) as grove:
            await (await hand(grove, "ann")).ok("add_child", **ADD)
            journal = grove._journal
            assert isinstance(journal, SqliteJournal)
            opened, writer = journal._opened, journal._line._writer
            assert opened is not None
            assert writer is not None
            stuck = hanging(grove)
            back = stuck.__enter__()
            await eventually(lambda: grove.troubles == ("store_locked",))
        back.set()
        await eventually(lambda: not writer._thread.is_alive())
        opened.close()


@contextmanager
def held_later(path: Path) -> Iterator[Any]:
    others: list[sqlite3.Connection] = []

    def hold() -> None:
        others.append(sqlite3.connect(path, isolation_level=None))
        others[0].execute("BEGIN IMMEDIATE")

    yield hold
    for other in others:
        other.close()


@pytest.mark.parametrize("how", ["deleted", "replaced", "overwritten", "log cut", "log deleted", "lock deleted"])
async def test_a_store_that_goes_away_under_a_gateway_takes_no_further_change(tmp_path: Path, how: str) -> None:
    path = tmp_path / "grove.db"
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(stored(path)) as grove, asked(grove) as http:
            ann, first = await hand(grove, "ann"), bytes(100) + path.read_bytes()[100:]
            await ann.ok("add_child", **ADD)
            version = await ann.version()
            await ready(http)
            match how:
                case "overwritten":
                    path.write_bytes(first)
                case "log cut":
                    os.truncate(path.with_name("grove.db-wal"), 0)
                case "log deleted":
                    path.with_name("grove.db-wal").unlink()
                case "lock deleted":
                    path.with_name("grove.db-lock").unlink()
                case "replaced":
                    (tmp_path / "new").write_bytes(path.read_bytes())
                    (tmp_path / "new").replace(path)
                case _:
                    path.unlink()
            refused = await ann("add_child", **ADD, versionToken=version)  # before anybody had time to look
            assert refused["error"]["reason"] == "journal_unavailable"
            assert "retryAfter" not in refused["error"]
            assert await unready(http) == ["store_gone"]
            assert (await ann.ok("get_node", nodeId="root"))["childrenCount"] == 1


async def test_a_backup_that_is_copied_over_a_running_store_is_not_mixed_with_it(tmp_path: Path) -> None:
    path = tmp_path / "grove.db"
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(stored(path)) as grove:
            await (await hand(grove, "ann")).ok("add_child", **ADD)
        old = path.read_bytes()
        async with Grove(stored(path)) as grove:
            await (await hand(grove, "ann")).ok("add_child", **ADD)
        async with Grove(stored(path)) as grove, asked(grove) as http:
            await ready(http)
            os.utime(path)  # its time alone is no sign
            await (await hand(grove, "ann")).ok("add_child", **ADD)
            path.write_bytes(old)
            assert await unready(http) == ["store_gone"]
        assert path.read_bytes() == old
        assert sorted(one.name for one in tmp_path.iterdir() if "wal" in one.name) == ["grove.db-wal.overwritten"]
        async with Grove(stored(path)) as grove:
            assert await children(await hand(grove, "ann")) == 1


async def test_a_state_file_that_is_overwritten_lets_nobody_in_and_one_that_others_write_does(tmp_path: Path) -> None:
    config = Config.model_validate({"state": str(tmp_path / "state"), "agents": EDITORS})
    path = tmp_path / "state" / "state.db"
    with ProjectState.of(config, make=True) as state:
        state.tokens.issue("ann", by="the test")
    old = path.read_bytes()
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(config) as grove, asked(grove) as http:
            await ready(http)
            with closing(sqlite3.connect(path)) as other:  # as another process does, and its log goes into the file
                other.execute("INSERT INTO met VALUES ('x')")
                other.commit()
                other.execute("PRAGMA wal_checkpoint(FULL)")
            grove.tokens.issue("bob", by="the test")
            await ready(http)
        async with Grove(config) as grove, asked(grove) as http:
            await ready(http)
            path.write_bytes(old)
            assert await unready(http) == ["state_gone"]
            with pytest.raises(OSError, match="overwritten"):
                grove.tokens.issue("ann", by="the test")
        assert path.read_bytes() == old


async def test_a_store_that_goes_away_is_noticed_though_nobody_writes(tmp_path: Path) -> None:
    path = tmp_path / "grove.db"
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(stored(path)) as grove, asked(grove) as http:
            await ready(http)
            path.unlink()
            assert await unready(http) == ["store_gone"]
            assert (await http.get("/api/audit")).status_code == 503


async def test_approvals_share_one_wait_for_a_state_file_that_is_held_and_a_retry_is_safe(tmp_path: Path) -> None:
    agents = {"ann": {"role": "editor", "tools": ["*"], "approve": ["add_child"]}}
    config, clock = Config.model_validate({"state": str(tmp_path / "state"), "agents": agents}), ManualClock()
    answers: list[dict[str, Any]] = []
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(config, clock=clock) as grove:
            ann = await hand(grove, "ann")
            version = await ann.version()

            async def write() -> None:
                answers.append(await ann("add_child", **ADD, versionToken=version))

            await write()
            assert answers.pop()["error"]["reason"] == "approval_required"
            with held(tmp_path / "state" / "state.db"):
                async with anyio.create_task_group() as writing:
                    for _ in range(3):
                        writing.start_soon(write)
                    await anyio.wait_all_tasks_blocked()
                    assert len(await grove.approvals.list("pending")) == 1  # who looks waits for nobody
                    assert not answers
                    clock.now += STATE_PATIENCE
                await write()  # the wait is over for all who come later
                assert len(answers) == 4
                for answer in answers:
                    error = answer["error"]
                    assert (error["code"], error["reason"]) == ("forbidden", "approval_unavailable")
                    assert error["retryAfter"] > 0
                    assert "safe to repeat the call" in error["message"]
            await write()
            assert answers[-1]["error"]["reason"] == "approval_required"
            assert len(await grove.approvals.list("pending")) == 1


async def test_a_state_file_that_goes_away_lets_nobody_in(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = Config.model_validate({"state": str(tmp_path / "state"), "agents": EDITORS})
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(config) as grove, asked(grove) as http:
            assert (await http.get("/api/project")).status_code == 200
            await ready(http)
            (tmp_path / "state" / "state.db").unlink()
            assert await unready(http) == ["state_gone"]
            with pytest.raises(OSError, match="was deleted, replaced or overwritten"):
                grove.tokens.issue("ann", by="the test")
            with anyio.fail_after(DEADLINE):  # a copy of the tokens may be a second old
                while (response := await http.get("/api/project")).status_code == 200:
                    await anyio.sleep(0.05)
            assert response.status_code == 503
    told = [one for one in caplog.records if one.levelname == "CRITICAL"]
    assert len(told) == 1

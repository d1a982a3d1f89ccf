"""What belongs to two projects is never used together: stores, states, folders, backups and databases are drawn.

A naive rule judges: a start succeeds exactly where all that it finds is of one project, or says nothing of any.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import anyio
import httpx2
import pytest

from grove_kit import config, hand
from services.postgres import Postgres
from services.proxy import Proxy
from toolgrove import Grove
from toolgrove.store.postgres import DatabaseAddress
from toolgrove.store.unusable import StoreUnusable
from waiting import DEADLINE, eventually

pytestmark = pytest.mark.anyio
ADD = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {"a": 1}}


@pytest.fixture(autouse=True)
def _one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that only the identity tells projects apart; keys that differ are refused as well."""
    monkeypatch.setenv("KEY_OF_ALL", "a key that all projects have")


def project(store: Path | str, state: Path | None) -> Any:
    kept = store if isinstance(store, str) else f"sqlite:{store}"
    more = {} if state is None else {"state": str(state)}
    return config(
        agents={"ann": {"role": "editor", "tools": ["*"]}},
        workspace={"store": kept, "auditKey": "${env:KEY_OF_ALL}"},
        **more,
    )


async def identity_of(store: Path | str, state: Path | None) -> str:
    """Open it, change something and decide something, as a day would."""
    async with Grove(project(store, state)) as grove:
        await (await hand(grove, "ann")).ok("add_child", **ADD)
        if state is not None:
            grove.tokens.issue("ann", by="test")
        assert grove.project
        return grove.project


def copied(store: Path, to: Path) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(store, to)
    return to


async def test_a_project_has_one_identity_of_its_own_from_start_to_start(tmp_path: Path, database: str) -> None:
    file, state = tmp_path / "a" / "grove.db", tmp_path / "a" / "state"
    first = await identity_of(file, state)
    assert await identity_of(file, state) == first
    other = await identity_of(tmp_path / "b" / "grove.db", tmp_path / "b" / "state")
    third = await identity_of(database, tmp_path / "c")
    assert len({first, other, third}) == 3
    assert await identity_of(database, tmp_path / "d") == third
    file.unlink()
    assert await identity_of(file, state) == first  # begun anew, with what people decided


@pytest.mark.parametrize("seed", range(3))
async def test_a_start_succeeds_exactly_where_all_is_of_one_project(
    tmp_path: Path, postgres: Postgres, seed: int
) -> None:
    random = Random(seed)
    databases = [postgres.fresh(), postgres.fresh()]
    known: dict[str, str] = {}
    for name, address in zip("ab", databases, strict=True):
        folder = tmp_path / name
        known[name] = await identity_of(folder / "grove.db", folder / "state")
        known[name.upper()] = await identity_of(address, folder / "database")
    for number in range(8):
        place = tmp_path / str(number)
        stated, stored = random.choice(("a", "b", "A", "B", "")), random.choice(("a", "b", "A", "B"))
        state = place / "state"
        if stated in ("a", "b"):
            copied(tmp_path / stated / "state" / "state.db", state / "state.db")
        elif stated:
            shutil.copytree(tmp_path / stated.lower() / "database", state)
        store: Path | str = databases["AB".index(stored)] if stored in "AB" else place / "grove.db"
        if isinstance(store, Path):
            copied(tmp_path / stored / "grove.db", store)
        told = f"state of {stated or 'nobody'}, store of {stored}"
        if stated in ("", stored):
            async with Grove(project(store, state)) as grove:
                assert grove.project == known[stored], told
        else:
            with pytest.raises(StoreUnusable) as caught:
                async with Grove(project(store, state)):
                    pass
            said = str(caught.value)
            assert known[stored] in said, told
            assert known[stated] in said, told
            assert "workspace.store" in said, told


async def test_a_database_of_another_project_under_the_same_address_keeps_a_replica_unready(
    postgres: Postgres, tmp_path: Path
) -> None:
    ours = postgres.fresh()
    schema = DatabaseAddress.of(ours).schema
    other = Postgres()
    other.start()
    try:
        with Proxy(postgres.port) as proxy, anyio.fail_after(2 * DEADLINE):
            theirs = other.address(schema)
            await identity_of(theirs, tmp_path / "theirs")
            through = ours.replace(f":{postgres.port}/", f":{proxy.port}/")
            async with Grove(project(through, tmp_path / "state")) as grove:
                ann = await hand(grove, "ann")
                await ann.ok("add_child", **ADD)
                transport = httpx2.ASGITransport(app=grove.asgi_app(anonymous=True))
                async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
                    before = len(other.ask(f"SELECT * FROM {schema}.audit"))
                    proxy.lead(other.port)

                    async def is_unready() -> bool:
                        answer = await http.get("/ready")
                        return answer.status_code == 503 and answer.json()["troubles"] == ["store_diverged"]

                    await eventually(is_unready)
                    refused = await ann("add_child", **ADD, versionToken="0")
                    assert refused["error"]["retryAfter"], refused
                    with pytest.raises(OSError, match="nothing was changed"):
                        grove.tokens.issue("ann", by="test")
                    assert not {hash for (hash,) in other.ask(f"SELECT hash FROM {schema}.tokens")} & {
                        *grove.tokens.holders()
                    }
                    assert len(other.ask(f"SELECT * FROM {schema}.audit")) == before
                    assert await is_unready()
                    proxy.lead(postgres.port)
                    await eventually(lambda: grove.healthy)
                    await ann.ok("add_child", **ADD)
    finally:
        other.close()

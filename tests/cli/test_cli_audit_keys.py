"""The audit log of a database is signed with one key by all its replicas, and nobody else's records become theirs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from anyio import to_thread

from cli_kit import Said, Toolgrove
from toolgrove import Config, Grove
from toolgrove.store.journal.postgres.tables import PostgresTables
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.postgres import DatabaseAddress
from toolgrove.store.postgres.connecting import connect
from toolgrove.store.unusable import StoreUnusable

pytestmark = pytest.mark.anyio


def project(folder: Path, database: str) -> Path:
    """The file of a replica with a state folder, and so with a key, of its own."""
    folder.mkdir()
    file = folder / "toolgrove.yaml"
    file.write_text(
        json.dumps({"agents": {"ann": {"role": "editor", "tools": ["*"]}}, "workspace": {"store": database}})
    )
    return file


async def write(grove: Grove, count: int = 1) -> None:
    ann = await grove.agent("ann")
    for _ in range(count):
        version = (await ann.call("get_node", {"nodeId": "root"}))["version"]
        node = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {}}
        added = await ann.call("add_child", {**node, "versionToken": version})
        assert "error" not in added, added


async def test_a_replica_with_another_key_is_not_ready_and_harms_no_log(
    tmp_path: Path, database: str, toolgrove: Toolgrove
) -> None:
    one, other = project(tmp_path / "one", database), project(tmp_path / "other", database)
    async with Grove(Config.load(one)) as grove:
        await write(grove)
        with pytest.raises(StoreUnusable, match=r"another key sealed.*workspace\.auditKey"):
            await Grove(Config.load(other)).__aenter__()
        await write(grove)
        assert (await grove.audit_log.verify()).whole is True

    async def say(*words: str, at: Path = one) -> Said:
        return await to_thread.run_sync(lambda: toolgrove(*words, "--config", str(at)))

    async def errors(at: Path) -> list[str]:
        findings = (await say("doctor", "--no-start", "--json", at=at)).json["findings"]
        return [found["message"] for found in findings if (found["area"], found["level"]) == ("audit", "error")]

    assert ["another key sealed" in message for message in await errors(other)] == [True]
    assert await errors(one) == []
    assert (await say("audit", "verify")).code == 0
    assert (await say("audit", "verify", at=other)).code == 3
    key = (await say("audit", "key")).out.strip()
    assert (await say("audit", "verify", "--key", key, at=other)).code == 0
    assert (await say("audit", "key", "--change", at=other)).code == 0
    async with Grove(Config.load(other)) as grove:
        await write(grove)
    with pytest.raises(StoreUnusable, match="another key sealed"):
        await Grove(Config.load(one)).__aenter__()
    assert (await say("audit", "verify", at=other)).code == 3
    changed = (await say("audit", "key", at=other)).out.strip()
    assert changed != key
    assert (await say("audit", "verify", "--key", key, "--key", changed, at=other)).code == 0


def tamper(database: str, edit: Callable[[str], str]) -> None:
    """Rewrite all records and chain them anew, and have the head name the new end, as who has the database can."""
    with closing(connect(DatabaseAddress.of(database))) as connection, connection:
        tables = PostgresTables(connection)
        previous = "0" * 64
        for number, line in tables.execute("SELECT number, line FROM audit ORDER BY number").fetchall():
            body = edit(line).rpartition(',"previous":"')[0] + f',"previous":"{previous}"'
            previous = hashlib.sha256(f"{body}}}".encode()).hexdigest()
            tables.execute("UPDATE audit SET line = ? WHERE number = ?", (f'{body},"hash":"{previous}"}}', number))
        head = Head.read(tables)
        assert head is not None
        head._replace(audit_hash=previous).write(tables)


async def test_what_somebody_writes_into_a_database_in_use_is_not_signed_as_ours(tmp_path: Path, database: str) -> None:
    async with Grove(Config.load(project(tmp_path / "one", database))) as grove:
        await write(grove, 3)
        assert (await grove.audit_log.verify()).whole is True
        tamper(database, lambda line: line.replace('"callId":"', '"callId":"x'))
        assert (await grove.audit_log.verify()).whole is False
        await write(grove, 2)
        proof = await grove.audit_log.verify()
        assert proof.whole is not True, proof


async def test_the_key_of_a_log_that_replicas_write_stays(tmp_path: Path, database: str, toolgrove: Toolgrove) -> None:
    one, other = project(tmp_path / "one", database), project(tmp_path / "other", database)

    async def change() -> Said:
        return await to_thread.run_sync(lambda: toolgrove("audit", "key", "--change", "--config", str(other)))

    async with Grove(Config.load(one)) as grove:
        await write(grove)
        for _ in range(2):  # a refusal is no replica
            said = await change()
            assert (said.code, "used by other replicas" in said.err) == (1, True), said
        await write(grove)
        assert (await grove.audit_log.verify()).whole is True
    assert (await change()).code == 0

"""Backups: one file with everything, made while the project runs, and put back without a silent gap."""

from __future__ import annotations

import json
import logging
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import anyio
import pytest

from cli_kit import Project, Said, Toolgrove
from grove_kit import Hand, hand
from toolgrove import Config, Grove
from toolgrove.store.audit import AuditFile
from toolgrove.store.state import hashed

pytestmark = pytest.mark.anyio
AGENTS = {"ann": {"role": "editor", "tools": ["*"]}}
WORKSPACE = {"store": "sqlite:data/grove.db", "auditLog": "audit.jsonl"}


@pytest.fixture
def ready(project: Project) -> Path:
    return project(agents=AGENTS, workspace=WORKSPACE)


async def aside(toolgrove: Toolgrove, *words: str) -> Said:
    """Run a command while the project is open in this process."""
    return await anyio.to_thread.run_sync(lambda: toolgrove(*words))


async def grow(ann: Hand, count: int) -> None:
    for number in range(count):
        await ann.ok("add_child", parentNodeId="root", payloadType="T", payloadProps={"n": number})


async def children(grove: Grove) -> int:
    return int((await (await hand(grove, "ann")).ok("get_node", nodeId="root"))["childrenCount"])


async def test_a_backup_is_made_while_agents_write_and_put_back_once_they_stopped(
    toolgrove: Toolgrove, ready: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Grove(Config.load(ready)) as grove:
        token = grove.tokens.issue("ann", by="test")
        ann = await hand(grove, "ann")
        await grow(ann, 3)
        said = await aside(toolgrove, "backup", "b.zip", "--json")
        assert said.code == 0, said.err
        assert (said.json["members"], said.json["whole"]) == (["store.db", "state.db", "audit.jsonl"], True)
        assert stat.S_IMODE((tmp_path / "b.zip").stat().st_mode) == 0o600
        await grow(ann, 4)
        grove.tokens.issue("ann", by="test", replace=True)
        refused = await aside(toolgrove, "restore", "b.zip")
        assert refused.code == 1
        assert "is in use by another process. Stop that one first" in refused.err
        assert await children(grove) == 7
    before = (tmp_path / "audit.jsonl").read_text()
    had = json.loads(before.splitlines()[-1])["number"]

    restored = await aside(toolgrove, "restore", "b.zip", "--json")
    assert restored.code == 0, restored.err
    assert restored.json["anchor"] == said.json["anchor"]
    end = int(said.json["anchor"].partition(":")[0])
    assert restored.json["lost"] == had - end
    assert restored.json["stays"] == [str(tmp_path / "audit.jsonl")]
    assert {Path(path).name.partition(".before-restore-")[0] for path in restored.json["kept"]} == {
        "grove.db",
        "state.db",
    }
    old = next(path for path in restored.json["kept"] if "grove.db" in path and not path.endswith(("-wal", "-shm")))
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("SELECT count(*) FROM node").fetchone()[0] >= 7

    with caplog.at_level(logging.ERROR):
        async with Grove(Config.load(ready)) as grove:
            assert await children(grove) == 3
            assert token_holds(grove, token)
            proof = await grove.audit_log.verify()
            assert (proof.breach, [(one.number, one.after, one.lost) for one in proof.breaks]) == (
                None,
                [(had + 1, end, had)],
            )
    assert f"The audit log ends at record {end}, and once had {had}" in caplog.text
    copy = (tmp_path / "audit.jsonl").read_text()
    assert copy.startswith(before), "what the copy proved, it still proves"
    assert [json.loads(line)["number"] for line in copy.splitlines()] == list(range(1, len(copy.splitlines()) + 1))
    deeds = (await aside(toolgrove, "audit", "list", "--kind", "audit", "--json")).json
    assert [one["operation"] for one in deeds][:2] == ["audit.broken", "audit.restored"]
    assert deeds[1]["by"].startswith("cli:")
    assert (await aside(toolgrove, "audit", "verify")).code == 0


def token_holds(grove: Grove, token: str) -> bool:
    return hashed(token) in grove.tokens.holders()


async def test_a_backup_in_the_middle_of_many_changes_is_of_one_moment(
    toolgrove: Toolgrove, ready: Path, tmp_path: Path
) -> None:
    done = anyio.Event()
    async with Grove(Config.load(ready)) as grove:
        ann = await hand(grove, "ann")

        async def write() -> None:
            while not done.is_set():
                await grow(ann, 1)

        async with anyio.create_task_group() as tasks:
            await grow(ann, 20)
            tasks.start_soon(write)
            said = [await aside(toolgrove, "backup", f"{number}.zip", "--json") for number in range(3)]
            done.set()
    assert [one.code for one in said] == [0, 0, 0]
    for one in said:
        assert toolgrove("restore", one.json["file"]).code == 0
        async with Grove(Config.load(ready)) as grove:
            assert await children(grove) >= 20
            assert (await grove.audit_log.verify()).breach is None


async def test_on_another_machine_everything_comes_from_the_backup(
    toolgrove: Toolgrove, ready: Path, tmp_path: Path
) -> None:
    async with Grove(Config.load(ready)) as grove:
        grove.tokens.issue("ann", by="test")
        await grow(await hand(grove, "ann"), 2)
    assert toolgrove("backup", "b.zip").code == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "toolgrove.yaml").write_text(ready.read_text())
    restored = toolgrove("restore", "b.zip", "--config", str(other / "toolgrove.yaml"), "--json")
    assert (restored.code, restored.json["kept"], restored.json["stays"], restored.json["lost"]) == (0, [], [], 0)
    for path in ("data/grove.db", ".toolgrove/state.db", "audit.jsonl"):
        assert stat.S_IMODE((other / path).stat().st_mode) == 0o600
    assert (other / "audit.jsonl").read_text() == (tmp_path / "audit.jsonl").read_text()
    async with Grove(Config.load(other / "toolgrove.yaml")) as grove:
        assert await children(grove) == 2
        assert set(grove.tokens.holders().values()) == {"ann"}
        proof = await grove.audit_log.verify()
        assert (proof.breach, proof.breaks) == (None, ())


async def test_a_restore_of_what_is_there_leaves_no_gap_and_a_smaller_file(
    toolgrove: Toolgrove, ready: Path, tmp_path: Path
) -> None:
    store = tmp_path / "data" / "grove.db"
    async with Grove(Config.load(ready)) as grove:
        await grow(await hand(grove, "ann"), 2)
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:  # as a store of an earlier format was
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA auto_vacuum=NONE")
        connection.execute("VACUUM")
        connection.execute("CREATE TABLE gone AS SELECT zeroblob(1000000)")
        connection.execute("DROP TABLE gone")
    large = store.stat().st_size
    assert toolgrove("backup", "b.zip").code == 0
    assert toolgrove("restore", "b.zip", "--json").json["lost"] == 0
    assert store.stat().st_size < large - 900_000
    async with Grove(Config.load(ready)) as grove:
        assert (await grove.audit_log.verify()).breaks == ()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def _replace_store(path: Path) -> None:
    """A store of another moment under the same manifest."""
    with ZipFile(path) as backup:
        parts = {name: backup.read(name) for name in backup.namelist()}
    manifest = json.loads(parts["manifest.json"])
    parts["manifest.json"] = json.dumps({**manifest, "anchor": f"1:{'0' * 64}"}).encode()
    with ZipFile(path, "w") as backup:
        for name, content in parts.items():
            backup.writestr(name, content)


def _not_a_zip(path: Path) -> None:
    path.write_text("no backup")


@pytest.mark.parametrize("harm", [_cut, _flip, _replace_store, _not_a_zip])
async def test_a_damaged_backup_is_refused_and_changes_nothing(
    toolgrove: Toolgrove, ready: Path, tmp_path: Path, harm: Any
) -> None:
    async with Grove(Config.load(ready)) as grove:
        await grow(await hand(grove, "ann"), 2)
    assert toolgrove("backup", "b.zip").code == 0
    async with Grove(Config.load(ready)) as grove:
        await grow(await hand(grove, "ann"), 1)
    harm(tmp_path / "b.zip")
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    said = toolgrove("restore", "b.zip")
    assert said.code == 1
    assert "is damaged" in said.err
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == files
    async with Grove(Config.load(ready)) as grove:
        assert await children(grove) == 3


async def test_a_copy_that_cannot_go_on_is_kept_beside_the_one_of_the_backup(
    toolgrove: Toolgrove, ready: Path, tmp_path: Path
) -> None:
    async with Grove(Config.load(ready)) as grove:
        await grow(await hand(grove, "ann"), 2)
    assert toolgrove("backup", "b.zip").code == 0
    log = tmp_path / "audit.jsonl"
    log.write_text(log.read_text() + "no record\n")
    kept = toolgrove("restore", "b.zip", "--json").json["kept"]
    assert [Path(path).read_text().endswith("no record\n") for path in kept if "audit.jsonl" in path] == [True]
    async with Grove(Config.load(ready)) as grove:
        assert (await grove.audit_log.verify()).breach is None
    assert AuditFile(log).prove([], is_sealed=False).breach is None


async def test_an_audit_log_that_does_not_hold_is_backed_up_and_told(
    toolgrove: Toolgrove, ready: Path, tmp_path: Path
) -> None:
    async with Grove(Config.load(ready)) as grove:
        await grow(await hand(grove, "ann"), 2)
    with closing(sqlite3.connect(tmp_path / "data" / "grove.db")) as connection, connection:
        connection.execute("UPDATE audit SET line = replace(line, 'ann', 'bob') WHERE number = 2")
    said = toolgrove("backup", "b.zip", "--json")
    assert (said.code, said.json["whole"], said.json["problem"]) == (1, False, "the record was altered")
    assert (tmp_path / "b.zip").exists()


def test_a_backup_replaces_no_file_and_needs_a_store(toolgrove: Toolgrove, project: Project, tmp_path: Path) -> None:
    project(agents=AGENTS)
    assert "this project has its workspace in memory" in toolgrove("backup", "b.zip").err
    project(agents=AGENTS, workspace=WORKSPACE)
    assert "is not there yet" in toolgrove("backup", "b.zip").err
    assert "No such file" in toolgrove("restore", "b.zip").err
    assert toolgrove("call", "ann", "get_node", "nodeId=root").code == 0
    (tmp_path / "b.zip").write_text("mine")
    said = toolgrove("backup", "b.zip")
    assert (said.code, (tmp_path / "b.zip").read_text()) == (1, "mine")
    assert "name another file" in said.err


async def test_the_backup_of_another_project_is_refused_whole_unless_it_is_asked_for(
    toolgrove: Toolgrove, ready: Path, tmp_path: Path
) -> None:
    tokens: dict[str, str] = {}
    projects: dict[str, str] = {}
    for name, nodes in (("one", 3), ("two", 5)):
        async with Grove(Config.load(ready)) as grove:
            await grow(await hand(grove, "ann"), nodes)
            tokens[name], projects[name] = grove.tokens.issue("ann", by="test"), grove.project
        said = await aside(toolgrove, "backup", f"{name}.zip", "--json")
        assert said.json["project"] == projects[name]
        if name == "one":
            config = Config.load(ready)
            assert config.state is not None
            for folder in (tmp_path / "data", config.state):
                folder.rename(folder.with_name(f"{folder.name}.one"))
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    refused = await aside(toolgrove, "restore", "one.zip")
    assert refused.code == 1
    (told,) = refused.err.strip().splitlines()
    assert projects["one"] in told
    assert projects["two"] in told
    assert "--other-project" in told
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()} == before
    same = await aside(toolgrove, "restore", "two.zip", "--json")
    assert (same.code, same.json["project"]) == (0, projects["two"]), same.err
    other = await aside(toolgrove, "restore", "one.zip", "--other-project", "--json")
    assert (other.code, other.json["project"]) == (0, projects["one"]), other.err
    async with Grove(Config.load(ready)) as grove:
        assert grove.project == projects["one"]
        assert await children(grove) == 3
        assert set(grove.tokens.holders()) == {hashed(tokens["one"])}
    shown = await aside(toolgrove, "doctor", "--json")
    assert f"of project {projects['one']}" in shown.out

"""A restore that is killed at any of its steps: the old files or the new ones, never some of each."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from grove_kit import hand
from toolgrove import Config, Grove
from toolgrove.store.backup import Places, make_backup
from toolgrove.store.restore_plan import is_cut_off
from warm.command import Process, python

pytestmark = pytest.mark.anyio
CHILD = Path(__file__).with_name("restore_crash_child.py")
ADD = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {}}


def _config(folder: Path) -> Config:
    return Config.model_validate(
        {
            "agents": {"ann": {"role": "editor", "tools": ["*"]}},
            "state": str(folder / "state"),
            "workspace": {"store": f"sqlite:{folder / 'data' / 'grove.db'}"},
        }
    )


async def _grow(folder: Path) -> None:
    """One child more in the store, and one token more in the state."""
    async with Grove(_config(folder)) as grove:
        await (await hand(grove, "ann")).ok("add_child", **ADD)
        grove.tokens.issue("ann", by="test")


async def _held(folder: Path) -> tuple[int, int]:
    """How many children the store has, and how many tokens the state."""
    async with Grove(_config(folder)) as grove:
        node = await (await hand(grove, "ann")).ok("get_node", nodeId="root")
        return int(node["childrenCount"]), len(grove.tokens.holders())


def _restored(folder: Path, backup: Path, last: int) -> int | None:
    """How many changes of files a whole restore makes; None if it was killed before the last one that is named."""
    words = map(str, (CHILD, folder / "data" / "grove.db", folder / "state" / "state.db", backup, last))
    with Process(python(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        out, err = child.communicate()
    if child.returncode == -signal.SIGKILL:
        return None
    assert child.returncode == 0, err
    return int(out)


@pytest.mark.long
async def test_a_restore_that_is_killed_at_any_step_leaves_the_old_files_or_the_new_ones(tmp_path: Path) -> None:
    made, backup = tmp_path / "made", tmp_path / "b.zip"
    await _grow(made)
    places = Places(store=made / "data" / "grove.db", state=made / "state" / "state.db")
    make_backup(places, backup, notary=None, made="2030-01-01T00:00:00Z")
    await _grow(made)
    found: list[tuple[int, int]] = []
    finished_later = 0
    for last in range(1, 200):
        folder = tmp_path / f"at-{last}"
        shutil.copytree(made, folder)
        whole = _restored(folder, backup, last)
        finished_later += is_cut_off(folder / "data" / "grove.db")
        found.append(await _held(folder))
        assert found[-1] in ((2, 2), (1, 1)), f"killed before change {last}"
        assert not is_cut_off(folder / "data" / "grove.db")
        if whole is not None:
            break
        if found[-1] == (2, 2) and last % 4 == 0:  # nothing is in the way of another try
            assert _restored(folder, backup, 0) is not None
            assert await _held(folder) == (1, 1)
        shutil.rmtree(folder)
    assert found[0] == (2, 2)
    assert found[-1] == (1, 1)
    assert found == sorted(found, reverse=True), "from one step on it counts"
    assert finished_later >= 3

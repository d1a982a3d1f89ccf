"""Fifty clients at work while replicas come and go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from replicas.fleet import fleet_of
from replicas.writers import writing
from waiting import DEADLINE

pytestmark = [pytest.mark.anyio, pytest.mark.services]


async def test_a_rolling_restart_fails_no_call(tmp_path: Path, project: dict[str, Any]) -> None:
    with fleet_of(tmp_path, project) as fleet, anyio.fail_after(2 * DEADLINE):
        async with writing(fleet) as writers:
            for replica in fleet.replicas:
                await fleet.until(replica, up=True)
                replica.signal()
                await fleet.until(replica, up=False)
                await writers.more()
                replica.signal()  # HAProxy has looked: no need to wait for the rest of the ten minutes
                assert await replica.ended() == 0
                await writers.more()
                await anyio.to_thread.run_sync(replica.start)
                await fleet.until(replica, up=True)
                await writers.more()
        assert writers.broken == {}
        assert writers.refusals == []
        assert any(writer.sessions > 1 for writer in writers.every)

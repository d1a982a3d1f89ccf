"""The project that a command works on."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module

from toolgrove.cli.options import file
from toolgrove.cli.patience import all_asked, still_starting
from toolgrove.cli.screen import Screen
from toolgrove.config import Config
from toolgrove.errors import AgentNotFound
from toolgrove.grove import Grove
from toolgrove.store.restore_plan import finish, is_cut_off

OPENING = "Opening the project …"


def load(chosen: argparse.Namespace) -> Config:
    """The configuration in the project file; a restore that was cut off is finished before anybody looks."""
    config = Config.load(file(chosen))
    store = config.workspace.store_path
    if store is not None and is_cut_off(store):
        owner = import_module("toolgrove.store.journal.sqlite.owner").Owner(store)
        try:
            finish(store)
        finally:
            owner.release()
    return config


@asynccontextmanager
async def opened(
    config: Config,
    screen: Screen,
    *,
    wait: float,
    agent: str | None = None,
    name_missing: bool = True,
    looking: bool = False,
) -> AsyncIterator[Grove]:
    """The project with its servers running, slow ones included; a person who waits sees which ones.

    Nobody waits for an `agent` that is not there. Who is only `looking` leaves the store to others.
    """
    if agent is not None and agent not in config.agents:
        raise AgentNotFound(agent, list(config.agents))
    count = len(config.servers) + len(config.http_tools)
    async with AsyncExitStack() as stack:
        with screen.waiting(OPENING):  # a large tree takes its time
            grove = await stack.enter_async_context(Grove(config, patience=wait, looking=looking))
        with screen.waiting(f"Asking {count} source{'s' * (count != 1)} for tools …") as show:
            await all_asked(grove, lambda late: show(still_starting(late)))
        if name_missing:
            for name, state in grove.pool.latest.sources.items():
                if state.problem:
                    screen.say(f"Without {name}, which is unavailable: {state.problem}", "yellow")
        yield grove

"""Following the project file: a good change is taken, any other leaves the last good configuration in force."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

import anyio

from toolgrove.call.recorder import Recorder
from toolgrove.config import Config, ConfigFile, Problem
from toolgrove.events import ConfigurationRead, Event
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.reload")
LOOK = 1.0
"""How many seconds pass between two looks at the file."""
FILE = "the project file"


class Reloadable(Protocol):
    """What runs by a configuration, and can go on with another: a grove."""

    config: Config
    recorder: Recorder
    clock: Clock

    def tell(self, event: Event) -> None: ...

    async def reload(self, config: Config) -> None: ...

    async def took(self, digest: str, *, changed: bool) -> None: ...


async def record_start(file: ConfigFile, project: Reloadable) -> None:
    """Put on record which configuration a project starts with; a file that is refused then has no log to say so in."""
    await _record_taken(file, project, at="start")


async def follow(file: ConfigFile, project: Reloadable, *, taken: Callable[[], None] = lambda: None) -> None:
    """Take every good change of the file until cancelled; `taken` is called after each."""
    while True:
        await anyio.sleep(LOOK)
        if file.touched() and await take_change(file, project):
            taken()


async def take_change(file: ConfigFile, project: Reloadable) -> bool:
    """Read the file again; whether another configuration is in force now. What is wrong with it is logged."""
    read = file.reload()
    problem = read.problem
    if not problem and read.changed:
        problem = await _take(project, read.config)
        if problem:
            file.problems = (Problem(path="", message=problem.partition("\n")[0]),)
        else:
            log.info("the project file was read again")
            await _record_taken(file, project, at="change")
    project.tell(ConfigurationRead(accepted=not problem, timestamp=project.clock.wall()))
    if problem:
        log.error("%s", problem)
        facts = {"code": "invalid_argument", "message": problem, "reason": "configuration"}
        await project.recorder.record("configuration", "configuration.refused", by=FILE, outcome="refused", error=facts)
    return read.changed and not problem


async def _record_taken(file: ConfigFile, project: Reloadable, *, at: str) -> None:
    await project.took(file.digest, changed=at == "change")
    details = {"hash": file.digest, "at": at}
    await project.recorder.record("configuration", "configuration.taken", by=FILE, details=details)


async def _take(project: Reloadable, config: Config) -> str:
    """Why the configuration could not be taken; empty if it was."""
    before = project.config
    try:
        await project.reload(config)
    except Exception as problem:  # whatever a source makes of its section must not end the others
        if await _put_back(project, before):
            return f"{problem}\nThe configuration that was read before stays in use."
        return (
            f"{problem}\nThe change was taken in part and cannot be taken back. Mend the project file, and start again."
        )
    return ""


async def _put_back(project: Reloadable, before: Config) -> bool:
    try:
        await project.reload(before)
    except Exception:
        log.exception("the configuration that was read before cannot be put back")
        return False
    return True

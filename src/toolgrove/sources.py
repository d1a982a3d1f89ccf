"""The sources of a configuration; what did not change is kept, with its connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolgrove.config import Config
from toolgrove.pool.misdeeds import Misdeeds
from toolgrove.pool.offer import PoolSource
from toolgrove.pool.offspring import Offspring
from toolgrove.pool.secrets import Secrets
from toolgrove.store.state import Logins, Pins
from toolgrove.types import Clock

if TYPE_CHECKING:
    from apcore import Executor, Registry

    from toolgrove.pool.http.host_shares import HostShares


class Sources:
    """Makes sources, one per server, HTTP entry and registry."""

    def __init__(
        self,
        *,
        pins: Pins,
        logins: Logins,
        clock: Clock,
        extensions: Registry | Executor | None,
        misdeeds: Misdeeds,
        offspring: Offspring,
    ) -> None:
        self._pins = pins
        self._logins = logins
        self._clock = clock
        self._extensions = extensions
        self._misdeeds = misdeeds
        self._offspring = offspring
        self._made: dict[str, tuple[Any, PoolSource]] = {}

    @cached_property
    def _hosts(self) -> HostShares:
        hosts: HostShares = _named("toolgrove.pool.http.host_shares:HostShares")(self._clock)
        return hosts

    def of(self, config: Config, secrets: Secrets) -> list[PoolSource]:
        """The sources of a configuration; one whose section is the same as before is the same object."""
        made: dict[str, tuple[Any, PoolSource]] = {}
        for name, section, make in self._wanted(config, secrets):
            kept = self._made.get(name)
            made[name] = kept if kept is not None and kept[0] == section else (section, make())
        self._made = made
        return [source for _, source in made.values()]

    def _wanted(self, config: Config, secrets: Secrets) -> Iterator[tuple[str, Any, Callable[[], PoolSource]]]:
        # Each kind is imported where it is used only: apcore alone takes half a second.
        if self._extensions is not None:
            kind = _named("toolgrove.pool.extensions:ExtensionSource")
            yield "extensions", None, partial(kind, self._extensions)
        elif config.extensions is not None:
            kind = _named("toolgrove.pool.extensions:ExtensionSource")
            section = config.extensions, config.import_budget
            yield "extensions", section, partial(kind.from_path, *section)
        for name, server in config.servers.items():
            folders = _named("toolgrove.pool.mcp.sandbox:ProjectFolders")(project=config.folder, state=config.state)
            kept = {"pins": self._pins, "logins": self._logins, "clock": self._clock}
            kept |= {"misdeeds": self._misdeeds, "offspring": self._offspring}
            kind = partial(_named("toolgrove.pool.mcp.source:McpSource"), **kept)
            more = {"pin_mode": config.pins, "first_contact": config.startup_budget, "folders": folders}
            yield name, (server, config.secrets, config.pins), partial(kind, name, server, secrets=secrets, **more)
        for name, tool in config.http_tools.items():
            kind = partial(_named("toolgrove.pool.http.source:HttpSource"), clock=self._clock, hosts=self._hosts)
            kind = partial(kind, pins=self._pins, pin_mode=config.pins)
            yield name, (tool, config.secrets, config.pins), partial(kind, name, tool, secrets)


def _named(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)

"""The sources of a configuration; what did not change is kept, with its connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolgrove.config import Config
from toolgrove.pool.offer import PoolSource
from toolgrove.pool.secrets import Secrets
from toolgrove.store.pins import Pins
from toolgrove.types import Clock

if TYPE_CHECKING:
    from apcore import Executor, Registry


class Sources:
    """Makes sources, one per server, HTTP entry and registry."""

    def __init__(self, *, pins: Pins, clock: Clock, extensions: Registry | Executor | None) -> None:
        self._pins = pins
        self._clock = clock
        self._extensions = extensions
        self._made: dict[str, tuple[Any, PoolSource]] = {}

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
            yield "extensions", config.extensions, partial(kind.from_directory, config.extensions)
        for name, server in config.servers.items():
            kind = partial(_named("toolgrove.pool.mcp.source:McpSource"), pins=self._pins, clock=self._clock)
            yield name, (server, config.secrets), partial(kind, name, server, secrets=secrets)
        for name, tool in config.http_tools.items():
            kind = _named("toolgrove.pool.http.source:HttpSource")
            yield name, (tool, config.secrets), partial(kind, name, tool, secrets, clock=self._clock)


def _named(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)

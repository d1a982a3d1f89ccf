"""The live tool table: what the registry holds now, as MCP tools."""

import threading
from collections.abc import Callable

from apcore import Registry
from mcp_types import Tool

from apcore_mcp.internals import remember_redactors, remember_schemas
from apcore_mcp.options import Tags
from apcore_mcp.server.factory import MCPServerFactory, ModuleEntry


class RegistryListener:
    """Follows a registry's events from any thread and keeps one entry per module that passes the filters."""

    def __init__(self) -> None:
        self._rebuilding = threading.Lock()
        """Held while entries are built, one event after the other."""
        self._lock = threading.Lock()
        """Held for each look at the table and each change of it; never for long."""
        self._entries: dict[str, ModuleEntry] = {}
        self._registry: Registry | None = None
        self._tags: Tags = None
        self._prefix: str | None = None
        self._cache = True
        self.on_change: Callable[[], None] = _nobody

    def start(self, registry: Registry, tags: Tags = None, prefix: str | None = None, cache: bool = True) -> None:
        """Fill the table and follow the registry; with `cache`, what pydantic and apcore make of schemas is kept."""
        if cache:
            remember_redactors()
        self._registry = registry
        self._tags = tags
        self._prefix = prefix
        self._cache = cache
        for event in ("register", "unregister"):
            registry.on(event, self._on_event)
        with self._rebuilding:  # events wait until the first fill is complete
            entries = self._built(registry, registry.list(tags=tags, prefix=prefix))
            with self._lock:
                self._entries = entries

    def stop(self) -> None:
        """Stop following the registry; the table stays as it is."""
        if self._registry is not None:
            for event in ("register", "unregister"):
                self._registry.off(event, self._on_event)
            self._registry = None

    def entries(self) -> dict[str, ModuleEntry]:
        """All entries in the order of their names."""
        with self._lock:
            entries = self._entries.copy()
        return dict(sorted(entries.items()))

    def entry(self, name: str) -> ModuleEntry | None:
        """The entry of one module, or None while it is not served."""
        with self._lock:
            return self._entries.get(name)

    @property
    def tools(self) -> dict[str, Tool]:
        """All tools in the order of their names."""
        return {name: entry.tool for name, entry in self.entries().items()}

    def _on_event(self, module_id: str, module: object) -> None:
        """Make the entry say what the registry says now, whatever order events arrive in."""
        registry = self._registry
        if registry is None or not module_id.startswith(self._prefix or ""):
            return
        with self._rebuilding:
            known = self.entry(module_id)
            is_there = module_id in registry.list(tags=self._tags, prefix=module_id)
            built = self._built(registry, [module_id] if is_there else [])
            with self._lock:
                if not built:
                    self._entries.pop(module_id, None)
                self._entries.update(built)  # in one step: what is registered again is never absent in between
        if known or built:
            self.on_change()

    def _built(self, registry: Registry, module_ids: list[str]) -> dict[str, ModuleEntry]:
        for module in map(registry.get, module_ids if self._cache else ()):
            remember_schemas(module)  # first, so that the definition is made of the remembered schemas
        return {entry.tool.name: entry for entry in MCPServerFactory().build_entries(registry, module_ids)}


def _nobody() -> None:
    """Nobody wants to hear of changes."""

"""The live tool table: what the registry holds now, as MCP tools."""

import threading
from collections.abc import Callable
from typing import Any

from apcore import Registry
from mcp_types import Tool

from apcore_mcp.server.factory import Entry, MCPServerFactory, remember_schemas


class RegistryListener:
    """Follows a registry's events from any thread and keeps one entry per module that passes the filters."""

    def __init__(self) -> None:
        self._factory = MCPServerFactory()
        self._lock = threading.Lock()
        self._rebuilding = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._registry: Registry | None = None

    def start(
        self,
        registry: Registry,
        tags: list[str] | None = None,
        prefix: str | None = None,
        cache_schemas: bool = True,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._registry, self._tags, self._prefix = registry, tags, prefix
        self._cache_schemas, self._on_change = cache_schemas, on_change
        for event in ("register", "unregister"):
            registry.on(event, self._on_event)
        for module_id in registry.list(tags=tags, prefix=prefix):
            self._refresh(registry, module_id)

    def stop(self) -> None:
        if self._registry is not None:
            for event in ("register", "unregister"):
                self._registry.off(event, self._on_event)
            self._registry = None

    def entries(self) -> dict[str, Entry]:
        """All entries in the order of their names."""
        with self._lock:
            return dict(sorted(self._entries.items()))

    def entry(self, name: str) -> Entry | None:
        with self._lock:
            return self._entries.get(name)

    @property
    def tools(self) -> dict[str, Tool]:
        return {name: entry.tool for name, entry in self.entries().items()}

    def _on_event(self, module_id: str, module: Any) -> None:
        registry = self._registry
        if registry is not None and module_id.startswith(self._prefix or ""):
            self._refresh(registry, module_id)
            self._on_change()

    def _refresh(self, registry: Registry, module_id: str) -> None:
        """Make the entry say what the registry says now, whatever order events arrive in."""
        with self._rebuilding:
            entry = None
            if module_id in registry.list(tags=self._tags, prefix=module_id):
                entry = self._factory.build_entry(registry, module_id)
                if self._cache_schemas:
                    remember_schemas(registry.get(module_id))
            with self._lock:
                self._entries.pop(module_id, None)
                if entry is not None:
                    self._entries[module_id] = entry

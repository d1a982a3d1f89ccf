"""What the patterns of a definition name in the pool: exact names, globs, and named sets such as `@read`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolgrove.config.toolsets import ALL, CORE, READ, is_set, set_name
from toolgrove.pool.globs import Globs
from toolgrove.pool.offer import Offer

CORE_TOOLS = frozenset(
    (
        "get_node",
        "list_children",
        "get_subtree",
        "search",
        "select_nodes",
        "add_child",
        "update_payload",
        "move_node",
        "remove_node",
        "tag_node",
        "apply_changes",
        "describe_tree",
        "undo",
    )
)
"""The tree tools with which a model can do all that matters: look, find, change, go back."""
Offers = Mapping[str, Offer]


class Toolsets:
    """The sets of a project, and the three that every project has."""

    def __init__(self, named: Mapping[str, Sequence[str]] | None = None) -> None:
        self._named = named or {}

    def matches(self, patterns: Sequence[str], offers: Offers) -> dict[str, str]:
        """The names that are named, each with what names it: a pattern, else a set, and the pattern in that set."""
        sets = [pattern for pattern in patterns if is_set(pattern)]
        found = Globs([pattern for pattern in patterns if not is_set(pattern)]).matches(offers)
        for one in sets:
            for name, rule in self._in(one, offers).items():
                found.setdefault(name, rule)
        return found

    def patterns(self, patterns: Sequence[str]) -> list[str]:
        """The patterns with those of the project's sets in the place of the sets' names."""
        flat: list[str] = []
        for pattern in patterns:
            inside = self._named.get(set_name(pattern)) if is_set(pattern) else None
            flat.extend([pattern] if inside is None else self.patterns(inside))
        return flat

    def _in(self, name: str, offers: Offers) -> dict[str, str]:
        if name == ALL:
            return dict.fromkeys(offers, name)
        if name == READ:
            return {tool: name for tool, offer in offers.items() if offer.tool is not None and not offer.tool.mutates}
        if name == CORE:
            return {tool: name for tool, offer in offers.items() if offer.kind == "builtin" and tool in CORE_TOOLS}
        inside = self.matches(self._named.get(set_name(name), ()), offers)
        return {tool: f"{name} ({pattern})" for tool, pattern in inside.items()}

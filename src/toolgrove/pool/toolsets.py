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
        """The names that are given, each with what names it: a pattern, else a set, and the pattern in that set."""
        return self._matches(patterns, offers, forbids=False)

    def covers(self, patterns: Sequence[str], offers: Offers) -> dict[str, str]:
        """The names that are forbidden or held back: also those of tools whose name without a rename is named."""
        return self._matches(patterns, offers, forbids=True)

    def outdated(self, patterns: Sequence[str], offers: Offers) -> dict[str, str]:
        """The names that only an older spelling gives or forbids, each with that spelling."""
        if not patterns:
            return {}
        spelt = {name: offer.formerly for name, offer in offers.items() if offer.formerly and name != offer.formerly}
        if not spelt:
            return {}
        globs = Globs([one for one in self.patterns(patterns) if not is_set(one)])
        return {
            name: old
            for name, old in spelt.items()
            if old not in offers and globs.match(old) is not None and globs.match(name) is None
        }

    def _matches(self, patterns: Sequence[str], offers: Offers, *, forbids: bool) -> dict[str, str]:
        sets = [pattern for pattern in patterns if is_set(pattern)]
        globs = Globs([pattern for pattern in patterns if not is_set(pattern)])
        found = globs.matches(offers)
        if globs.patterns:
            for offer in [one for one in offers.values() if (one.formerly or one.also) and one.name not in found]:
                old = (offer.formerly,) if offer.formerly and (forbids or offer.formerly not in offers) else ()
                known_as = (*old, *offer.also) if forbids else old
                pattern = next(filter(None, map(globs.match, known_as)), None)
                if pattern is not None:
                    found[offer.name] = pattern
        for one in sets:
            for name, rule in self._in(one, offers, forbids=forbids).items():
                found.setdefault(name, rule)
        return found

    def patterns(self, patterns: Sequence[str]) -> list[str]:
        """The patterns with those of the project's sets in the place of the sets' names."""
        flat: list[str] = []
        for pattern in patterns:
            inside = self._named.get(set_name(pattern)) if is_set(pattern) else None
            flat.extend([pattern] if inside is None else self.patterns(inside))
        return flat

    def _in(self, name: str, offers: Offers, *, forbids: bool) -> dict[str, str]:
        if name == ALL:
            return dict.fromkeys(offers, name)
        if name == READ:
            return {tool: name for tool, offer in offers.items() if offer.tool is not None and not offer.tool.mutates}
        if name == CORE:
            return {tool: name for tool, offer in offers.items() if offer.kind == "builtin" and tool in CORE_TOOLS}
        inside = self._matches(self._named.get(set_name(name), ()), offers, forbids=forbids)
        return {tool: f"{name} ({pattern})" for tool, pattern in inside.items()}

"""The tree as resources: a subtree is `tree://<nodeId>`, read as `get_subtree` gives it, and watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from toolgrove.errors import ResourceNotFound
from toolgrove.notation.json_value import compact
from toolgrove.tools import WorkspaceSource
from toolgrove.types import Call, Result

GET_SUBTREE = "get_subtree"
_ADDRESS = "tree://"
_JSON = "application/json"
TEMPLATE: dict[str, Any] = {
    "uriTemplate": f"{_ADDRESS}{{nodeId}}",
    "name": "subtree",
    "title": "A subtree of the workspace",
    "description": "A node and all below it, as get_subtree answers; the whole tree is tree://root.",
    "mimeType": _JSON,
}


class TreeShelf:
    """What agents that have `get_subtree` can read and watch of the tree."""

    name = "tree"
    template = TEMPLATE

    def __init__(self, source: WorkspaceSource) -> None:
        self._source = source

    @staticmethod
    def has(uri: str) -> bool:
        """Whether an address is one of the tree."""
        return uri.startswith(_ADDRESS)

    def reading(self, uri: str) -> tuple[str, dict[str, Any]]:
        """The call that reads a subtree."""
        return GET_SUBTREE, {"nodeId": node_of(uri)}

    def contents(self, uri: str, result: Result) -> Result:
        """What that call answered, as the reading of a resource."""
        return {"contents": [{"uri": uri, "mimeType": _JSON, "text": compact(result)}]}

    def watch(self, uri: str, tell: Callable[[], None]) -> Callable[[], None]:
        """Tell of each commit that changes the subtree, until the answer is called."""
        return self._source.watches.add(node_of(uri), tell)

    async def confirm_watch(self, call: Call, uri: str) -> Result:
        """A node that is there can be watched."""
        if node_of(uri) not in self._source.workspace.tree.nodes:
            raise ResourceNotFound(uri)
        return {}


def node_of(uri: str) -> str:
    """The node that an address of the tree names."""
    return unquote(uri.removeprefix(_ADDRESS))

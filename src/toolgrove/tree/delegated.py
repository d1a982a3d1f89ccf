"""What a delegated run keeps beside the tree while it lasts; nobody else sees it, and no store keeps it."""

from __future__ import annotations

from toolgrove.tree.undo import UndoStacks
from toolgrove.tree.view import View


class DelegatedSession:
    """The run's own view, undo stack and bookmarks."""

    def __init__(self, session: str) -> None:
        self.view = View(session=session)
        self.undo_stacks = UndoStacks()
        self.bookmarks: dict[str, str] = {}

    def twin(self) -> DelegatedSession:
        """A session that starts out as this one."""
        twin = DelegatedSession(self.view.session)
        twin.view, twin.undo_stacks, twin.bookmarks = self.view.twin(), self.undo_stacks.twin(), self.bookmarks.copy()
        return twin

    def point(self, label: str, node_id: str | None) -> str | None:
        """Set a label, or take it away; where it stood before."""
        before = self.bookmarks.pop(label, None)
        if node_id is not None:
            self.bookmarks[label] = node_id
        return before

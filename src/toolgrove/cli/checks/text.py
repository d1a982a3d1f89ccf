"""Text in the tree that no client could read as it is: it holds half a character, and is shown with a replacement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolgrove.cli.checks.finding import Finding
from toolgrove.config import Config
from toolgrove.store.journal import read_workspace
from toolgrove.store.unusable import StoreUnusable

_NAMED = 10


def at_rest(config: Config) -> Iterator[Finding]:
    """What stands in a store that is a file, whether or not a gateway has it open."""
    if config.workspace.store_path is None:
        return
    try:
        saved = read_workspace(config.workspace.store_path)
    except StoreUnusable as problem:
        yield Finding(area="tree", level="note", subject="text", message=f"the tree cannot be read: {problem}")
        return
    yield from check([] if saved is None else saved.half_texts())


def check(places: Sequence[str]) -> Iterator[Finding]:
    """One warning that names the first places."""
    if not places:
        return
    more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    text = (
        f"half a character (a lone surrogate) stands in {', '.join(places[:_NAMED])}{more}; an older version took it "
        "in, and clients are shown U+FFFD instead. Write these texts again; an id goes with its parent node"
    )
    yield Finding(area="tree", level="warning", subject="text", message=text)

"""What the workspace refuses, or does not have."""

from __future__ import annotations

from collections.abc import Sequence

from toolgrove.errors.kinds import Conflict, Forbidden, InvalidArgument, NotFound
from toolgrove.errors.wording import did_you_mean


class PayloadMismatch(InvalidArgument):
    """A payload does not fit its registered type."""

    def __init__(self, *, payload_type: str, path: str, problem: str, node_id: str | None = None) -> None:
        where = f"property {path!r}" if path else "the payload"
        super().__init__(
            f"{where} does not fit payload type {payload_type!r}: {problem}. "
            "list_payload_types shows what the type allows.",
            reason="payload_schema",
            path=path,
            payloadType=payload_type,
            nodeId=node_id,
        )


class UnknownType(InvalidArgument):
    """No payload type of that name is registered."""

    def __init__(self, *, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f"Payload type {name!r} is not registered; known types: {', '.join(known)}.{did_you_mean(name, known)}",
            reason="unknown_type",
            payloadType=name,
        )


class GuardedProperty(InvalidArgument):
    """Somebody tried to write a structural property of a self-payload node."""

    def __init__(self, *, name: str, payload_type: str, node_id: str | None = None) -> None:
        super().__init__(
            f"{name!r} belongs to the node itself on self-payload type {payload_type!r} and cannot be "
            "written. Use move_node to change the parent and import_merge to change the type; an id never changes.",
            reason="guarded_property",
            property=name,
            nodeId=node_id,
        )


class UnwritablePath(InvalidArgument):
    """A path leads through something that is no object."""

    def __init__(self, *, path: str, key: str, is_list: bool) -> None:
        what = "a list" if is_list else "a plain value"
        super().__init__(
            f"{path!r} cannot be written: {key!r} in this path is {what}, not an object. Set all of {key!r} at once.",
            reason="path",
            path=path,
        )


class BadQuery(InvalidArgument):
    """A selection query cannot be read; the message carries a caret line."""

    def __init__(
        self, *, query: str, position: int, problem: str, expected: Sequence[str] = (), hint: str | None = None
    ) -> None:
        start = max(0, position - 60)
        line = query[start : position + 40].replace("\n", " ").replace("\t", " ")
        caret = " " * (position - start) + "^"
        wanted = f"\nexpected: {', '.join(expected)}" if expected else ""
        advice = f"\nhint: {hint}" if hint else ""
        super().__init__(
            f"{problem} at position {position}\n  {line}\n  {caret}{wanted}{advice}",
            reason="query",
            position=position,
            expected=list(expected) or None,
            hint=hint,
        )


class NodeNotFound(NotFound):
    """No node has that id."""

    def __init__(self, node_id: str) -> None:
        super().__init__(
            f"No node has the id {node_id!r}. It may have been removed; use search or get_view to find current ids.",
            nodeId=node_id,
        )


class ParentGone(Conflict):
    """A node cannot go back to its place, since the node that it stood under is gone."""

    def __init__(self, *, node_id: str, parent_id: str, top: str, snapshot: str) -> None:
        super().__init__(
            f"{node_id!r} was under {parent_id!r}, which was removed, so nothing was changed. First bring it back with "
            f'restore_subtree {{"nodeId": "{top}", "snapshotId": "{snapshot}"}}.',
            reason="parent_gone",
            nodeId=node_id,
            parentId=parent_id,
            restore={"nodeId": top, "snapshotId": snapshot},
        )


class Unnamed(NotFound):
    """A snapshot, bookmark, ruleset or version that does not exist."""

    def __init__(self, *, kind: str, name: str, known: Sequence[str], where: str) -> None:
        super().__init__(
            f"No {kind} {name!r} exists.{did_you_mean(name, known)} {where} shows what exists.", reason=kind
        )


class OutsideWriteRoot(Forbidden):
    """A change reaches outside the subtree that the agent, or one above it, may write."""

    def __init__(self, *, root: str, node_id: str, of: str | None) -> None:
        holder = f", the write root of agent {of!r}, on whose behalf you work" if of is not None else ""
        super().__init__(
            f"You may change only {root!r}{holder}, and what is below it; {node_id!r} is outside. Nothing was changed.",
            reason="write_root",
            writeRoot=root,
            nodeId=node_id,
        )


class VersionLost(Conflict):
    """The version names a state that is not in the history of this tree."""

    def __init__(self, *, given: str, latest: str) -> None:
        super().__init__(
            f"Version {given!r} is not in the history of this tree: the store was set back to an earlier state, or the "
            "version is of another tree. Changes made after that state are gone. Read what you rely on again, then go "
            f"on with version {latest!r}.",
            reason="version_lost",
            latestVersion=latest,
        )


class StaleVersion(Conflict):
    """The version token is missing or no longer current."""

    def __init__(self, *, given: str | None, latest: str, changed: Sequence[str], count: int) -> None:
        opening = "versionToken is missing" if given is None else "versionToken is not current"
        detail = f": {count} node{'s' * (count != 1)} changed since" if count else ""
        super().__init__(
            f"{opening}{detail}. Read what you rely on again, then retry with versionToken "
            f"{latest!r} (every result has the current one as 'version').",
            reason="missing_version" if given is None else "stale_version",
            latestVersion=latest,
            changedNodeIds=list(changed),
        )

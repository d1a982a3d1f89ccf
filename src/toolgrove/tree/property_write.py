"""Writing into a payload by a path: where reading the path would find a value, or where it would look for one."""

from __future__ import annotations

import sys
from typing import Any

from toolgrove.errors import NotJson, UnwritablePath
from toolgrove.notation.json_value import MAX_NESTING, detached
from toolgrove.tree.node import Payload
from toolgrove.tree.property_path import Segments, pick, segments


def fitting(path: str, value: Any) -> Any:
    """A copy of a value that may stand at a path; nothing in a payload is nested too deeply."""
    room = MAX_NESTING - len(_parts(path))
    if room < 0:
        raise NotJson(path=path, problem="is nested too deeply")
    return detached(value, path, room)


def put(payload: Payload, path: str, value: Any) -> None:
    """Set the value at a path of a payload that is the caller's own; what is nested in it is replaced, not changed."""
    _put(payload, _parts(path), value, path)


def drop(payload: Payload, path: str) -> bool:
    """Take away what is at a path, in the same way; whether there was anything."""
    return _drop(payload, _parts(path), path)


def top_key(payload: Payload, path: str) -> str:
    """The property of the payload that a write to the path goes to, or into."""
    return _step(payload, _parts(path))[0]


def _parts(path: str) -> Segments:
    parts = segments(path)
    # A name such as "No." is no path.
    return parts if all(parts) else (".".join(parts),)


def _step(holder: Payload, parts: Segments) -> tuple[str, Segments]:
    """The key that a path leads to, there already or not, and what is left of the path behind it."""
    whole = ".".join(parts)
    if whole in holder:
        return whole, ()
    return pick(holder, parts[0]) or parts[0], parts[1:]


def _put(holder: Payload, parts: Segments, value: Any, path: str) -> None:
    key, rest = _step(holder, parts)
    if rest:
        inner = holder.get(key)
        if inner is not None and not isinstance(inner, dict):
            raise UnwritablePath(path=path, key=key, is_list=isinstance(inner, list))
        inner = {} if inner is None else dict(inner)
        _put(inner, rest, value, path)
        value = inner
    holder[sys.intern(key)] = value


def _drop(holder: Payload, parts: Segments, path: str) -> bool:
    key, rest = _step(holder, parts)
    if key not in holder:
        return False
    if not rest:
        del holder[key]
        return True
    if isinstance(holder[key], list):
        raise UnwritablePath(path=path, key=key, is_list=True)
    if not isinstance(holder[key], dict):
        return False
    inner = dict(holder[key])
    dropped = _drop(inner, rest, path)
    if dropped:
        holder[key] = inner
    return dropped

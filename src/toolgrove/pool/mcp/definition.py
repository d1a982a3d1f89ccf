"""What is taken over of a server's definition: all of it, but for icons that do harm and words in our name."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from toolgrove.pool.mcp.result import OURS

Definition = dict[str, Any]
MAX_ICONS = 8
MAX_ICON = 16 * 1024
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_DRAWINGS = (".svg", ".svgz")


def taken_over(raw: Definition) -> Definition:
    """The definition without icons that could do harm, and without keys of `_meta` in which only we speak."""
    taken = dict(raw)
    if raw.get("icons") is not None:
        given = raw["icons"] if isinstance(raw["icons"], list) else []
        taken["icons"] = [icon for icon in given if _is_harmless(icon)][:MAX_ICONS]
        if taken["icons"] != raw["icons"] and not taken["icons"]:
            del taken["icons"]
    meta = raw.get("_meta")
    if isinstance(meta, dict) and any(key.startswith(OURS) for key in meta):
        taken["_meta"] = {key: value for key, value in meta.items() if not key.startswith(OURS)}
    return taken


def as_given(taken: Mapping[str, Any]) -> Definition:
    """The definition as clients see it; what is null is absent, since many of them refuse the whole list for it."""
    shown = {key: value for key, value in taken.items() if value is not None}
    for part in ("annotations", "execution"):
        if part in shown:
            shown[part] = {key: value for key, value in shown[part].items() if value is not None}
    return shown


def is_for_apps_alone(taken: Mapping[str, Any]) -> bool:
    """Whether only the page of an MCP App may call it, and no model."""
    meta = taken.get("_meta")
    ui = meta.get("ui") if isinstance(meta, dict) else None
    visibility = ui.get("visibility") if isinstance(ui, dict) else None
    return isinstance(visibility, list) and "model" not in visibility


def needs_task(taken: Mapping[str, Any]) -> bool:
    """Whether it can only be run as a task, which we cannot."""
    execution = taken.get("execution")
    return isinstance(execution, dict) and execution.get("taskSupport") == "required"


def _is_harmless(icon: Any) -> bool:
    """Whether an icon is a picture that any client can read and show."""
    if not isinstance(icon, dict) or not isinstance(icon.get("src"), str):
        return False
    sizes = icon.get("sizes", [])
    if not isinstance(sizes, list) or not all(isinstance(size, str) for size in sizes):
        return False
    if icon.get("theme", "light") not in ("light", "dark") or icon.get("mimeType", _IMAGES[0]) not in _IMAGES:
        return False
    return _is_picture(icon["src"])


def _is_picture(source: str) -> bool:
    if not source.isascii() or not source.isprintable():
        return False
    if source.startswith("https://"):
        # A drawing can carry a script, and its address is all that tells it from a picture.
        return not source.partition("?")[0].partition("#")[0].casefold().endswith(_DRAWINGS)
    head, comma, data = source.partition(",")
    if not comma or head not in [f"data:{image};base64" for image in _IMAGES] or len(data) > MAX_ICON:
        return False
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True

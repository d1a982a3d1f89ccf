"""Names in the pool: at most 64 characters of [A-Za-z0-9_-], never parsed back."""

from __future__ import annotations

import hashlib
import re

MAX_NAME = 64
_FOREIGN = re.compile(r"[A-Za-z0-9_./-]{1,128}")


def is_foreign_legal(name: str) -> bool:
    """Whether a server may give its own tool this name; MCP also allows dots and slashes."""
    return _FOREIGN.fullmatch(name) is not None


def pool_name(prefix: str, own_name: str) -> str:
    """The name under which a foreign tool stands in the pool; without a prefix, its own."""
    whole = f"{prefix}_{own_name}" if prefix else own_name
    return shortened(whole.replace(".", "_").replace("/", "_"))


def shortened(name: str) -> str:
    """A name that fits; what is cut off stays told apart by a hash."""
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: MAX_NAME - 9]}_{digest}"

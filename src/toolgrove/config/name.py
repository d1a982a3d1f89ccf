"""Names that agents, servers and tools may have in the file."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

MAX_NAME = 64
PATTERN = rf"^[A-Za-z0-9_-]{{1,{MAX_NAME}}}$"
_LEGAL = re.compile(PATTERN.removesuffix("$"))


def _legal(name: str) -> str:
    if _LEGAL.fullmatch(name) is None:
        near = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:MAX_NAME]
        hint = f"; {near!r} would do" if near else ""
        raise ValueError(f"a name has 1 to {MAX_NAME} of A-Z a-z 0-9 _ -{hint}")
    return name


Name = Annotated[str, AfterValidator(_legal), WithJsonSchema({"type": "string", "pattern": PATTERN})]

"""What an operation is called: its operationId where that can be a name, without what a framework added to it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

_LEGAL = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class OwnNamesOf:
    """The names of a document's operations.

    FastAPI writes `read_item_items__item_id__get` for the function `read_item`: function, path and method. That is
    `read_item` here, unless two operations would then share a name.
    """

    def __init__(self, operations: Iterable[tuple[str, str, Mapping[str, Any]]]) -> None:
        self._short = Counter(
            simplified(shortened(path, method, operation.get("operationId"))) for path, method, operation in operations
        )

    def of(self, path: str, method: str, operation: Mapping[str, Any]) -> tuple[str, str]:
        """Its name, and the one that it has by the document alone."""
        told = operation.get("operationId")
        whole, short = _legal(path, method, told), shortened(path, method, told)
        return (short, whole) if short and self._short[simplified(short)] == 1 else (whole, whole)


def shortened(path: str, method: str, operation_id: Any) -> str:
    """The name of the function before path and method, where an operationId is made like that."""
    suffix = f"{re.sub(r'[^0-9A-Za-z_]', '_', path)}_{method}"
    if not isinstance(operation_id, str) or not operation_id.endswith(suffix):
        return ""
    short = operation_id.removesuffix(suffix).strip("_")
    return short if _LEGAL.fullmatch(short) else ""


def _legal(path: str, method: str, operation_id: Any) -> str:
    if not isinstance(operation_id, str) or not operation_id:
        return simplified(f"{method}_{path}") or method
    if _LEGAL.fullmatch(operation_id) and operation_id.strip("_.-"):
        return operation_id
    return simplified(operation_id) or method


def simplified(told: str) -> str:
    """The spelling that a name must have if it is made by us, and that all had before."""
    return re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9_.-]+", "_", told)).strip("_")[:128]

"""How a document wants lists and objects written, in a query and in a form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolgrove.pool.http.openapi.unfit import Unfit
from toolgrove.pool.http.parameter_style import Style

JSON_MEDIA = re.compile(r"application/(?:[\w.+-]+\+)?json")
_STYLES: dict[str, Style] = {"form": "spread", "spaceDelimited": "space", "pipeDelimited": "pipe", "deepObject": "deep"}


def query_style(what: str, told: Mapping[str, Any], place: str) -> Style:
    """The style that `style` and `explode` ask for; `what` names the parameter where there is none."""
    name = told.get("style", "form")
    explode = told.get("explode", name == "form") is True
    style = _STYLES.get(name) if isinstance(name, str) else None
    if style is None:
        raise Unfit(f"{what} has the style {name!r}, which cannot be sent in a {place}")
    if style in ("space", "pipe") and explode:
        return "spread"
    return "comma" if style == "spread" and not explode else style

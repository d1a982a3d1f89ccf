"""`${…}` in the settings of a server: our own references stay, those of other products are translated."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo, WithJsonSchema

from toolgrove.config.fields import folder_of

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS = ("env:", "file:", "keyring:")


def translated(text: str, info: ValidationInfo) -> str:
    """The text with the references of other products in our words, and their places filled in."""
    folder = folder_of(info) or Path.cwd()
    places = {
        "workspaceFolder": str(folder),
        "workspaceFolderBasename": folder.name,
        "userHome": str(Path.home()),
        "pathSeparator": os.sep,
        "/": os.sep,
    }

    def translate(match: re.Match[str]) -> str:
        return places.get(match[1]) or _reference(match[0], match[1])

    return _REFERENCE.sub(translate, text)


def _reference(whole: str, inner: str) -> str:
    if inner.startswith(_OURS):
        if not inner.partition(":")[2]:
            raise ValueError(f"{whole} names nothing after the colon")
        return whole
    if _VARIABLE.fullmatch(inner):  # Claude Code's spelling
        return f"${{env:{inner}}}"
    kind, colon, rest = inner.partition(":")
    if kind == "input":
        variable = re.sub(r"\W+", "_", rest).upper() or "NAME"
        raise ValueError(
            f"{whole} asks a person at VS Code, and nobody sits here; write ${{env:{variable}}} and set that variable"
        )
    if rest.startswith("-") and _VARIABLE.fullmatch(kind):
        raise ValueError(f"${{{kind}:-…}} has a default, which is not supported; write ${{env:{kind}}} and set it")
    if colon and kind.isidentifier():
        raise ValueError(f"${{{kind}:…}} is not known; write ${{env:NAME}}, ${{file:path}} or ${{keyring:name}}")
    return whole


Filled = Annotated[str, AfterValidator(translated)]
"""Text that may hold references."""

Word = Annotated[Filled, WithJsonSchema({"type": ["string", "number"]})]
"""The same for a command line or an environment, where numbers need no quotes."""

"""Names of variables and headers that usually hold a secret; whether a value is one is not asked here."""

from __future__ import annotations

import re

_NAME = re.compile(
    r"auth(?!or(?:$|[_-]|s|ed|ity))|bearer|cookie|credential|passw|passphrase|secret"
    r"|token(?!s|i[sz])|api[_-]?key|key(?:$|[_-])|(?:^|[_-])(?:pat|pwd)(?:$|[_-])",
    re.IGNORECASE,
)


def names_a_secret(name: str) -> bool:
    """Whether what stands under this name is to be hidden, such as under `GITHUB_PAT` or `X-Api-Key`."""
    return _NAME.search(name) is not None

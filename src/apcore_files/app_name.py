"""What people write for one Python file: `app.py`, or `app.py:registry` for one name in it."""

import re
from pathlib import Path

_APP = re.compile(r"(?P<file>.*\.py)(?::(?P<name>[^:/\\]+))?")


def is_app(text: str) -> bool:
    """Whether this names a Python file."""
    return _APP.fullmatch(text) is not None


def parts(text: str) -> tuple[Path, str | None]:
    """The file, and the name in it if one is given; ValueError for anything else."""
    found = _APP.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} is not a Python file; name one, such as app.py or app.py:registry")
    return Path(found["file"]), found["name"]

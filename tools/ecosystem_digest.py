"""Whether anything that other people's clients and servers touch has changed since `make ecosystem` last passed.

python tools/ecosystem_digest.py           exits with 1 where something has
python tools/ecosystem_digest.py --write   says that they passed with what is here now
"""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PASSED = ROOT / "tests" / "ecosystem" / "passed"
TOUCHED = (
    # What serves, and what it serves.
    "src/mcp_serve",
    "src/toolgrove/agent.py",
    "src/toolgrove/mcp_face.py",
    "src/toolgrove/types.py",
    "src/toolgrove/call",
    "src/toolgrove/pool",
    "src/toolgrove/tools",
    "src/toolgrove/web",
    # What it stands on, and whom it meets.
    "requirements/run.txt",
    ".ci/node",
    "tests/ecosystem",
    "tools/ecosystem.sh",
)
LEFT_OUT = {".pyc", ".html", ".csp"}


def files() -> Iterator[Path]:
    for place in (ROOT / name for name in TOUCHED):
        found = sorted(place.rglob("*")) if place.is_dir() else [place]
        yield from (file for file in found if file.is_file() and file.suffix not in LEFT_OUT and file != PASSED)


def digest() -> str:
    """One hash of all those files and their names."""
    whole = hashlib.sha256()
    for file in files():
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        whole.update(f"{file.relative_to(ROOT).as_posix()} {content}\n".encode())
    return whole.hexdigest()


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PASSED.write_text(digest() + "\n", "utf-8")
    elif not PASSED.exists() or PASSED.read_text("utf-8").strip() != digest():
        sys.exit("something that other people's clients and servers touch has changed: make ecosystem")

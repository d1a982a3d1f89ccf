"""The process of one hop: `python -m bench.hop NAME http PORT ERA UPSTREAM` or `… NAME stdio ERA UPSTREAM`.

NAME is a module of bench.hops; UPSTREAM is an address or the word stdio, for the upstream itself `default` or `lean`.
"""

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = 10
STDIO = "stdio"


def child(era: str) -> list[str]:
    """The upstream as a child process; it must be started in ROOT."""
    return [sys.executable, "-m", "bench.hop", "upstream", STDIO, era, "default"]


def main(name: str, how: str, *rest: str) -> None:
    getattr(importlib.import_module(f"bench.hops.{name}"), how)(*rest)


if __name__ == "__main__":
    main(*sys.argv[1:])

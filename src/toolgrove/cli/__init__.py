"""The command line: start a project, check it, ask why, and call tools by hand."""

from collections.abc import Sequence
from importlib import import_module


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; whoever interrupts it while it is being loaded is not shown what it was loading."""
    try:
        code: int = import_module("toolgrove.cli.program").main(arguments)
    except KeyboardInterrupt:
        return 130
    return code

"""Reads what was typed; a slip gets the word that was meant, and help has examples that stay as they are."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import NoReturn

EXAMPLES = "Examples:\n"


class _Layout(argparse.HelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith((EXAMPLES, "\n")):
            return text.strip("\n")
        return super()._fill_text(text, width, indent)


class Reader(argparse.ArgumentParser):
    """A parser whose errors teach."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **{"formatter_class": _Layout, "allow_abbrev": False, **options})  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, what was probably meant, and where to read on."""
        meant = self._meant(message)
        message = re.sub(r"^argument COMMAND: invalid choice: ('[^']*').*", r"there is no command \1", message)
        more = f"'{self.prog} --help' shows how it is used."
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: {message}{'. ' + meant if meant else ''}\n{more}\n")

    def _meant(self, message: str) -> str:
        closest = import_module("toolgrove.errors.wording").closest  # only a slip pays for its import
        found = re.search(r"invalid choice: '([^']*)'|unrecognized arguments: (\S+)", message)
        if found is None:
            return ""
        word = found[1] if found[1] is not None else found[2].partition("=")[0]
        known = [one for one in self.words() if one.startswith("-") == word.startswith("-")]
        match = closest(word, known)
        return f"Did you mean {match!r}?" if match else ""

    def words(self) -> Iterator[str]:
        """Every command, verb, choice and option that could stand here."""
        for action in self._actions:
            yield from action.option_strings
            if isinstance(action, argparse._SubParsersAction):
                yield from action.choices
                for inner in action.choices.values():
                    yield from inner.words()
            elif action.choices is not None:
                yield from map(str, action.choices)

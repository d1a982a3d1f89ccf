"""`toolgrove schema`: the JSON Schema of the project file, for editors."""

from __future__ import annotations

import argparse
from typing import Any

from toolgrove.cli.screen import Screen
from toolgrove.config import Config


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "schema",
        parents=[shared],
        description="Print the JSON Schema of the project file, for editors that complete and check it.",
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    screen.data(Config.json_schema())
    return 0

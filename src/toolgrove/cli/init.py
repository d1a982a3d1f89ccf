"""`toolgrove init`: write a project file to start from."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from toolgrove.cli.options import DEFAULT, file
from toolgrove.cli.screen import Screen, line
from toolgrove.config import Config
from toolgrove.notation.unseen_text import visible_json

SCHEMA = "toolgrove.schema.json"
STARTER = Path(__file__).with_name("starter.yaml")


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "init",
        parents=[shared],
        description="Write a commented project file, and beside it the schema that lets editors complete it.",
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Write the file; one that is there already stays as it is."""
    target = file(chosen)
    schema = target.with_name(SCHEMA)
    try:
        with target.open("x", encoding="utf-8") as starter:
            starter.write(STARTER.read_text(encoding="utf-8"))
    except FileExistsError:
        raise ValueError(f"{target} is there already and stays as it is; name another file with --config") from None
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(
            f"{target.parent} is not a folder; make it first, or name another file with --config"
        ) from None
    schema.write_text(visible_json(Config.json_schema()) + "\n", encoding="utf-8")
    agents = list(Config.load(target).agents)
    there = "" if target == DEFAULT else f" --config {target}"
    screen.answer(
        {"file": str(target), "schema": str(schema), "agents": agents},
        line(f"Wrote {target} with the agents {' and '.join(agents)}, and {schema} for your editor."),
        line(f"Next: toolgrove doctor{there}, then toolgrove explain {agents[0]}{there}"),
    )
    return 0

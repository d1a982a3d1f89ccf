"""`toolgrove tree`: print the project's tree, or one in a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from rich.text import Text
from rich.tree import Tree as Branches

from toolgrove.cli.desk.desk import Desk
from toolgrove.cli.desk.opening import desk, kept, running
from toolgrove.cli.numbers import whole_number
from toolgrove.cli.screen import Screen, line

if TYPE_CHECKING:
    from toolgrove.config import Config


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "tree", parents=[shared], description="Print the project's tree, or one in a file of exported nodes."
    )
    parser.add_argument(
        "file", type=Path, nargs="?", metavar="FILE", help="a document of export_subtree or export_view, nested or flat"
    )
    parser.add_argument("--depth", type=whole_number("a number of levels"), default=None, help="levels to print")
    parser.add_argument(
        "--nodes", type=whole_number("a number of nodes", low=1), default=500, help="nodes to print at most (500)"
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    wanted = {"depth": chosen.depth, "nodes": chosen.nodes}
    if chosen.file is None:
        found = anyio.run(partial(_ask, chosen, screen, **wanted, whole=screen.as_json))
        screen.answer(found, *([] if screen.as_json else [branches(found)]))
        return 0
    with screen.waiting(f"Reading {chosen.file} …"):
        whole, shown = import_module("toolgrove.cli.tree_file").read(chosen.file, **wanted)
    screen.answer(whole, branches(shown))
    return 0


async def _ask(chosen: argparse.Namespace, screen: Screen, **wanted: Any) -> Any:
    """The project's tree; a store in a file is read as it lies, a database is opened."""

    def here(config: Config) -> AbstractAsyncContextManager[Desk]:
        return (running(screen, wait=1) if config.workspace.is_database else kept())(config)

    async with desk(chosen, screen, here) as project:
        return await project.ask("tree", **wanted)


def branches(root: Mapping[str, Any]) -> Branches:
    """A tree for the terminal; `+n` counts what is not shown."""
    top = Branches(_label(root))
    level = [(root, top)]
    for node, branch in level:
        level += [(child, branch.add(_label(child))) for child in node["children"]]
        if node["more"]:
            branch.add(line(f"+{node['more']}", "dim"))
    return top


def _label(node: Mapping[str, Any]) -> Text:
    parts = [line(node["name"], "bold")] if node["name"] else []
    parts += [line(node["id"], "dim"), line(node["type"], "cyan")]
    parts += [line(f"#{tag}", "yellow") for tag in node["tags"]]
    parts += [line(json.dumps(node["payload"], ensure_ascii=False))] if node["payload"] else []
    return Text(" ").join(parts)

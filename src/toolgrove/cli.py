"""The command line: look at a tree in a file, and call tools by hand."""

from __future__ import annotations

import argparse
import copy
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console
from rich.markup import escape
from rich.tree import Tree as Branches

from toolgrove.agent import Agent
from toolgrove.config import Config
from toolgrove.errors import GroveError
from toolgrove.grove import Grove
from toolgrove.tools.sample import DOCUMENT, RULESETS
from toolgrove.tree.document import loads, read
from toolgrove.tree.merge import Merge
from toolgrove.tree.node import Node
from toolgrove.tree.payload_type import PayloadTypes
from toolgrove.tree.tree import Tree
from toolgrove.types import ToolSpec

try:
    import readline
except ImportError:  # pragma: no cover  not every Python has it; the REPL works without completion
    readline = None  # type: ignore[assignment]

_NODES = 1_000_000
_WRITING = ("versionToken", "idempotencyKey", "dryRun")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if it went well."""
    chosen = _parser().parse_args(arguments)
    console = Console()
    try:
        exit_code: int = chosen.run(chosen, console)
    except (GroveError, OSError, ValueError) as problem:
        Console(stderr=True).print(f"toolgrove: {problem}", style="red", markup=False)
        return 1
    return exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="toolgrove", description="One governed tool surface for AI agents.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    show = commands.add_parser("tree", help="print the tree in a JSON file", description="Print a tree.")
    show.add_argument("file", type=Path, help="a document of export_subtree or export_view, nested or flat")
    show.add_argument("--depth", type=int, default=None, help="levels to print")
    show.add_argument("--nodes", type=int, default=500, help="nodes to print at most (500)")
    show.set_defaults(run=_show_tree)
    repl = commands.add_parser("repl", help="call tools by hand", description="Call tools by hand.")
    repl.add_argument("--config", type=Path, default=None, help="a project file")
    repl.add_argument("--agent", default="editor", help="the agent to be (editor)")
    repl.add_argument("--sample", action="store_true", help="start with a small sample tree")
    repl.set_defaults(run=_repl)
    return parser


# toolgrove tree -----------------------------------------------------------------------------------


def _show_tree(chosen: argparse.Namespace, console: Console) -> int:
    form = loads(chosen.file.read_text(encoding="utf-8"))
    tree = Tree()
    for key in ("view", "subtree"):
        form = form.get(key, form)
    incoming = read(form, limit=_NODES)
    merge = Merge(tree, PayloadTypes(), strategy="upsert", match_by="nodeId", parent=tree.root)
    merge.run(incoming)
    shown = branches(tree.root, depth=chosen.depth, nodes=chosen.nodes)
    if not console.is_terminal:
        # A file or a pipe has no edge: deep levels must not be folded at column 80.
        console = Console(width=4 * chosen.nodes + 1_000)
    console.print(shown)
    return 0


def branches(root: Node, *, depth: int | None, nodes: int) -> Branches:
    """A tree for the terminal, breadth first up to a number of nodes; `+n` counts what is not shown."""
    while root.parent is None and root.children_count == 1 and not root.payload:
        root = next(iter((root.children or {}).values()))
    top = Branches(_label(root))
    level: list[tuple[Node, Branches, int]] = [(root, top, 0)]
    left = nodes - 1
    for node, branch, at in level:
        children = list((node.children or {}).values())
        room = 0 if depth is not None and at >= depth else max(0, left)
        for child in children[:room]:
            level.append((child, branch.add(_label(child)), at + 1))
        left -= min(room, len(children))
        if len(children) > room:
            branch.add(f"[dim]+{len(children) - room}[/dim]")
    return top


def _label(node: Node) -> str:
    rest = {key: value for key, value in node.payload.items() if key.lower() != "name"}
    name = f"[bold]{escape(node.name)}[/bold] " if node.name else ""
    detail = f" {escape(json.dumps(rest, ensure_ascii=False))}" if rest else ""
    tags = "".join(f" [yellow]#{escape(tag)}[/yellow]" for tag in sorted(node.tags))
    return f"{name}[dim]{escape(node.id)}[/dim] [cyan]{escape(node.type)}[/cyan]{tags}{detail}"


# toolgrove repl -----------------------------------------------------------------------------------


def _repl(chosen: argparse.Namespace, console: Console) -> int:
    config = Config.load(chosen.config) if chosen.config is not None else _sample_config()
    anyio.run(_converse, config, chosen, console)
    return 0


def _sample_config() -> Config:
    return Config.model_validate({"workspace": {"rulesets": RULESETS}})


async def _converse(config: Config, chosen: argparse.Namespace, console: Console) -> None:
    async with Grove(config) as grove:
        desk = Conversation(await grove.agent(chosen.agent), console)
        if chosen.sample:
            await desk.call("import_merge", {"json": copy.deepcopy(DOCUMENT), "strategy": "upsert"})
        complete_with(desk.candidates)
        console.print(f"{len(desk.agent.tools)} tools as {desk.agent.name}; 'help', 'help TOOL', 'quit'.")
        for line in _lines():
            if line in ("quit", "exit"):
                break
            if line:
                await desk.answer(line)


def _lines() -> Iterator[str]:
    while True:
        try:
            yield input("grove> ").strip()
        except (EOFError, KeyboardInterrupt):
            return


def complete_with(candidates: Callable[[str], list[str]]) -> None:
    """Offer completions with the Tab key, where the terminal can."""
    if readline is None or not sys.stdin.isatty():
        return

    def complete(word: str, state: int) -> str | None:
        found = [one for one in candidates(readline.get_line_buffer()) if one.startswith(word)]
        return found[state] if state < len(found) else None

    readline.set_completer_delims(" \t\n")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")


class Conversation:
    """A person at the prompt: calls as one agent, with the latest version filled in."""

    def __init__(self, agent: Agent, console: Console) -> None:
        self.agent = agent
        self._console = console
        self._specs: dict[str, ToolSpec] = {spec.name: spec for spec in agent.tools}

    def candidates(self, line: str) -> list[str]:
        """What may come next on a line: a tool, or an argument of the tool on it."""
        words = line.split()
        if len(words) < 1 or (len(words) == 1 and not line.endswith(" ")):
            return [f"{name} " for name in (*self._specs, "help", "quit")]
        if words[0] == "help":
            return list(self._specs)
        spec = self._specs.get(words[0])
        return [f"{name}=" for name in spec.input_schema["properties"]] if spec else []

    async def answer(self, line: str) -> None:
        """Carry out one line: `tool key=value …`, `tool {json}` or `help [tool]`."""
        name, _, rest = line.partition(" ")
        if name == "help":
            self._help(rest.strip())
            return
        try:
            arguments = read_arguments(rest.strip())
        except ValueError as problem:
            self._console.print(f"cannot read the arguments: {problem}", style="red", markup=False)
            return
        self._console.print_json(json.dumps(await self.call(name, arguments)))

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool; a mutation without a version gets the current one."""
        spec = self._specs.get(name)
        if spec is not None and not spec.annotations.readonly and "versionToken" not in arguments:
            root = await self.agent.call("get_node", {"nodeId": "root"})
            arguments["versionToken"] = root.get("version")
        return await self.agent.call(name, arguments)

    def _help(self, name: str) -> None:
        spec = self._specs.get(name)
        if spec is None:
            self._console.print(" ".join(self._specs), markup=False)
            return
        self._console.print(f"{spec.name}: {spec.description}", markup=False)
        required = spec.input_schema["required"]
        for argument, schema in spec.input_schema["properties"].items():
            if argument not in _WRITING:
                mark = "*" if argument in required else " "
                self._console.print(f" {mark} {argument}  {schema.get('description', '')}", markup=False)


def read_arguments(text: str) -> dict[str, Any]:
    """Arguments as a JSON object, or as key=value words whose values are JSON or plain text."""
    if text.startswith("{"):
        form = json.loads(text)
        if not isinstance(form, dict):
            raise ValueError("an object is needed")
        return form
    arguments: dict[str, Any] = {}
    for word in shlex.split(text):
        key, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"{word!r} is not key=value")
        try:
            arguments[key] = json.loads(value)
        except ValueError:
            arguments[key] = value
    return arguments


if __name__ == "__main__":
    sys.exit(main())

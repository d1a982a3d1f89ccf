"""`toolgrove repl`: call tools by hand."""

from __future__ import annotations

import argparse
import copy
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio

from toolgrove.cli.arguments import read_arguments
from toolgrove.cli.call import Terminal
from toolgrove.cli.desk.desk import Desk
from toolgrove.cli.desk.opening import desk, running
from toolgrove.cli.options import DEFAULT, add_agent, add_patience
from toolgrove.cli.screen import Screen, line

if TYPE_CHECKING:
    from toolgrove.config import Config

try:
    import readline
except ImportError:  # pragma: no cover  not every Python has it; the REPL works without completion
    readline = None  # type: ignore[assignment]

_WRITING = ("versionToken", "idempotencyKey", "dryRun")


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "repl",
        parents=[shared],
        description="Call tools by hand as an agent of the project; without a project, on an empty tree of its own.",
    )
    add_agent(parser, "the agent you act as, or app.py", default="editor")
    parser.add_argument("--sample", action="store_true", help="start with a small sample tree")
    add_patience(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Read and answer line by line until the person leaves."""
    anyio.run(_converse, chosen, screen)
    return 0


@asynccontextmanager
async def _desk(chosen: argparse.Namespace, screen: Screen) -> AsyncIterator[Desk]:
    """The project's desk; without a project file, that of an empty tree which ends with the conversation."""
    here = running(screen, wait=chosen.wait, agent=chosen.agent)
    is_project = chosen.config is not None or (DEFAULT.exists() and not chosen.sample)
    async with desk(chosen, screen, here) if is_project else here(_sample_config()) as project:
        yield project


def _sample_config() -> Config:
    form = {"workspace": {"rulesets": _sample().RULESETS}}
    config: Config = import_module("toolgrove.config").Config.model_validate(form)
    return config


def _sample() -> Any:
    return import_module("toolgrove.tools.sample")


async def _converse(chosen: argparse.Namespace, screen: Screen) -> None:
    console = screen.out
    async with _desk(chosen, screen) as project:
        found = await project.ask("tools", agent=chosen.agent)
        conversation = Conversation(project, chosen.agent, found["tools"], screen)
        if chosen.sample:
            await conversation.call("import_merge", {"json": copy.deepcopy(_sample().DOCUMENT), "strategy": "upsert"})
        complete_with(conversation.candidates)
        console.print(f"{len(found['tools'])} tools as {chosen.agent}; 'help', 'help TOOL', 'quit'.")
        for typed in _lines():
            if typed in ("quit", "exit"):
                break
            if typed:
                await conversation.answer(typed)


def _lines() -> Iterator[str]:
    while True:
        # The event loop's own handler would only note a Ctrl-C, and the prompt would go on waiting.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            typed = input("grove> ").strip()
        except (EOFError, KeyboardInterrupt):
            return
        finally:
            signal.signal(signal.SIGINT, before)
        yield typed


def complete_with(candidates: Callable[[str], list[str]]) -> None:
    """Offer completions with the Tab key, where the terminal can."""
    editor: Any = readline  # its type differs by platform
    if editor is None or not sys.stdin.isatty():
        return

    def complete(word: str, state: int) -> str | None:
        found = [one for one in candidates(editor.get_line_buffer()) if one.startswith(word)]
        return found[state] if state < len(found) else None

    editor.set_completer_delims(" \t\n")
    editor.set_completer(complete)
    editor.parse_and_bind("tab: complete")


class Conversation:
    """A person at the prompt: calls as one agent, with the latest version filled in."""

    def __init__(self, project: Desk, agent: str, specs: Sequence[Mapping[str, Any]], screen: Screen) -> None:
        self._project, self._agent = project, agent
        self._console = screen.out
        self._person = Terminal(screen)
        self._specs = {spec["name"]: spec for spec in specs}

    def candidates(self, typed: str) -> list[str]:
        """What may come next on a line: a tool, or an argument of the tool on it."""
        words = typed.split()
        if len(words) < 1 or (len(words) == 1 and not typed.endswith(" ")):
            return [f"{name} " for name in (*self._specs, "help", "quit")]
        if words[0] == "help":
            return list(self._specs)
        spec = self._specs.get(words[0])
        return [f"{name}=" for name in _properties(spec)] if spec else []

    async def answer(self, typed: str) -> None:
        """Carry out one line: `tool key=value …`, `tool {json}` or `help [tool]`."""
        name, _, rest = typed.partition(" ")
        if name == "help":
            self._help(rest.strip())
            return
        try:
            arguments = read_arguments(rest.strip())
        except ValueError as problem:
            self._console.print(line(f"cannot read the arguments: {problem}", "red"))
            return
        self._console.print_json(json.dumps(await self.call(name, arguments)))

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool; a mutation without a version gets the current one."""
        spec = self._specs.get(name)
        if spec is not None and not spec["annotations"]["readonly"] and "versionToken" in _properties(spec):
            root = await self._call("get_node", {"nodeId": "root"})
            arguments = {**({"versionToken": root["version"]} if "version" in root else {}), **arguments}
        return await self._call(name, arguments)

    async def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        answer = await self._project.ask("call", self._person, agent=self._agent, tool=name, arguments=arguments)
        return answer["result"]

    def _help(self, name: str) -> None:
        spec = self._specs.get(name)
        if spec is None:
            self._console.print(line(" ".join(self._specs)))
            return
        self._console.print(line(f"{spec['name']}: {spec['description']}"))
        required = spec["inputSchema"].get("required", ())
        for argument, schema in _properties(spec).items():
            if argument not in _WRITING:
                mark = "*" if argument in required else " "
                about = schema.get("description", "") if isinstance(schema, Mapping) else ""
                self._console.print(line(f" {mark} {argument}  {about}"))


def _properties(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a tool; a foreign one need not name any."""
    properties: Mapping[str, Any] = spec["inputSchema"].get("properties", {})
    return properties

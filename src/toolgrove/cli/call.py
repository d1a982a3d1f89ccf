"""`toolgrove call`: call one tool as an agent, through the whole gate."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from typing import Any

import anyio

from toolgrove.cli.arguments import read_value, read_words
from toolgrove.cli.desk.desk import Here
from toolgrove.cli.desk.opening import config_of, desk, running
from toolgrove.cli.options import add_patience, require_agent
from toolgrove.cli.screen import Screen, line
from toolgrove.notation.unseen_text import visible_json

FORGOTTEN = (
    "This tree is in memory (workspace.store: memory), so it ended with this command. To keep it, start "
    "'toolgrove serve' first, or set workspace.store to sqlite:PATH."
)


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "call",
        parents=[shared],
        description="Call a tool as an agent. The result is JSON on stdout; progress and questions are on stderr.",
    )
    require_agent(parser)
    parser.add_argument("tool", metavar="TOOL")
    parser.add_argument("arguments", metavar="KEY=VALUE", nargs="*", help="the arguments, or one JSON object")
    add_patience(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Call it; 1 if the answer is an error, or a tool's own failure."""
    read_words(chosen.arguments)  # a slip is reported before anything is started
    return anyio.run(_call, chosen, screen)


async def _call(chosen: argparse.Namespace, screen: Screen) -> int:
    async with desk(chosen, screen, running(screen, wait=chosen.wait, agent=chosen.agent)) as project:
        asked = {"agent": chosen.agent, "tool": chosen.tool, "words": chosen.arguments}
        answer = await project.ask("call", Terminal(screen), **asked)
    result, error = answer["result"], answer["result"].get("error")
    waits = isinstance(error, dict) and error.get("reason") == "approval_required" and "approvalId" in error
    if isinstance(error, dict) and screen.out.is_terminal and not screen.as_json:
        _tell(screen, error, waits=waits)
    else:
        screen.data(result)
    if isinstance(project, Here) and answer["source"] == "workspace" and config_of(chosen).workspace.store == "memory":
        screen.say(FORGOTTEN, "yellow")
    if not isinstance(error, dict):
        return int(result.get("isError") is True)
    if waits:
        screen.say(f"To agree: toolgrove approvals approve {error['approvalId']}, then repeat the call.", "yellow")
    return 1


def _tell(screen: Screen, error: dict[str, Any], *, waits: bool) -> None:
    """An error for a person: the sentence, then the facts that it does not hold."""
    said: str = error["message"]
    screen.say(f"{'waiting' if waits else error['code']}: {said}", "yellow" if waits else "red")
    for name, value in error.items():
        text = value if isinstance(value, str) else visible_json(value)
        if name not in ("code", "message", "reason") and text and text not in said:
            screen.say(f"  {name}: {text}")


class Terminal:
    """The person who typed the command: sees progress, and can be asked if they sit at a terminal."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Print how far the call is, beside the result."""
        share = f"{progress:g}/{total:g}" if total else f"{progress:g}"
        self._screen.say(f"{share} {message or ''}".rstrip(), "dim")

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        """Ask; an empty line declines where an answer is required, and leaves out where it is not."""
        if not sys.stdin.isatty():
            return None
        self._screen.say(message, "bold")
        schema, answers = schema or {}, dict[str, Any]()
        for name, wanted in schema.get("properties", {}).items():
            wanted = wanted if isinstance(wanted, dict) else {}
            hint = wanted.get("enum") or wanted.get("type", "")
            self._screen.err.print(line(f"{name} ({hint}): "), end="")
            typed = await _line()
            if typed:
                answers[name] = _typed(typed, wanted)
            elif name in schema.get("required", ()):
                return None
        return answers


async def _line() -> str:
    """What the person types next; waiting for it in a thread would keep Ctrl-C from ending the command."""
    with suppress(OSError):  # not every stdin can be waited for
        await anyio.wait_readable(sys.stdin)
    return sys.stdin.readline().strip()


def _typed(text: str, schema: dict[str, Any]) -> Any:
    if schema.get("type") == "string":
        return text
    words = {"y": True, "yes": True, "n": False, "no": False}
    if schema.get("type") == "boolean" and text.lower() in words:
        return words[text.lower()]
    return read_value(text)

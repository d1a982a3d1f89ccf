"""`toolgrove run`: have an agent's model work on a task, and follow it."""

from __future__ import annotations

import argparse
from typing import Any

import anyio

from toolgrove.cli.desk.opening import desk, running
from toolgrove.cli.options import add_patience, require_agent
from toolgrove.cli.screen import Screen
from toolgrove.notation.unseen_text import visible


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "run",
        parents=[shared],
        description="Have the model of the project's runner work on a task as an agent, with that agent's tools. What "
        "it says is on stdout, what it does on stderr; with --json every event is a line of JSON.",
    )
    require_agent(parser)
    parser.add_argument("task", metavar="TASK", help="what it is to do, in words")
    add_patience(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Run it; 1 if there was no answer."""
    return anyio.run(_follow, chosen, screen)


async def _follow(chosen: argparse.Namespace, screen: Screen) -> int:
    show = screen if screen.as_json else _Transcript(screen)
    event: dict[str, Any] = {}
    async with desk(chosen, screen, running(screen, wait=chosen.wait, agent=chosen.agent)) as project:
        async for event in project.follow("run", agent=chosen.agent, task=chosen.task):
            show.event(event)
    return 0 if event.get("outcome") == "success" else 1


class _Transcript:
    """For a person: the words of the agent's own model as they come, and a remark for what else happens."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._at_start = True

    def event(self, event: dict[str, Any]) -> None:
        """Show an event."""
        kind = event["type"]
        if kind == "text" and event["depth"] == 0:
            self._write(event["text"])
            return
        remark = _remark(event)
        if remark is not None:
            if not self._at_start:
                self._write("\n")
            self._screen.say("  " * event.get("depth", 0) + remark[0], remark[1])

    def _write(self, text: str) -> None:
        self._screen.out.file.write("\n".join(map(visible, text.split("\n"))))
        self._screen.out.file.flush()
        self._at_start = text.endswith("\n")


def _remark(event: dict[str, Any]) -> tuple[str, str] | None:
    """What a person should know of an event, and in which style."""
    match event["type"]:
        case "tool_started":
            return f"{event['agent']} calls {event['tool']}", "dim"
        case "tool_failed":
            return f"{event['tool']} failed: {event['error']['message']}", "yellow"
        case "approval_requested":
            agree = f"toolgrove approvals approve {event['approvalId']}"
            return f"{event['tool']} waits for a person. To agree, in another terminal: {agree}", "yellow"
        case "approval_decided":
            return f"{event['by']} {'agreed' if event['approved'] else 'said no'}", "dim"
        case "run_finished":
            return _ending(event)
    return None


def _ending(event: dict[str, Any]) -> tuple[str, str]:
    if event["outcome"] != "success":
        return f"No answer: {event['error']['message']}", "red"
    used = [f"{model}: {sums['input']} tokens in, {sums['output']} out" for model, sums in event["usage"].items()]
    calls = event["toolCalls"]
    return "; ".join([f"{calls} call{'s' * (calls != 1)} in {event['seconds']:g} s", *used]), "dim"

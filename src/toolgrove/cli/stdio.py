"""`toolgrove stdio`: one agent over stdin and stdout, for desktop clients."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from toolgrove.cli.options import STATE, add_agent, add_patience, file
from toolgrove.control.door import reached
from toolgrove.control.relay import relay


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "stdio",
        parents=[shared],
        description="Serve one agent over stdin and stdout. If a gateway serves the project, this command passes "
        "everything on to it; otherwise it runs the project itself. Whoever starts this command is that agent: no "
        "token is needed.",
    )
    add_agent(parser)
    add_patience(parser)
    parser.set_defaults(run=_serve, quick=_pass_on, verbose=True)


def _pass_on(chosen: argparse.Namespace) -> int | None:
    """Carry everything to the gateway; None if there is none where it usually leaves its note."""
    folder = str(file(chosen).absolute().parent / STATE)
    note = reached(folder, file(chosen))
    return None if note is None else relay(folder, note, chosen.agent)


def _serve(chosen: argparse.Namespace, screen: Any) -> int:
    """The same with the state folder that the project file names; without a gateway, the project in this process."""
    project = import_module("toolgrove.config").ConfigFile(file(chosen))  # only those who run it pay for its import
    state = project.config.state
    note = None if state is None else reached(state, file(chosen))
    carried = None if note is None else relay(str(state), note, chosen.agent)
    if carried is not None:
        return carried
    code: int = import_module("toolgrove.cli.stdio_here").serve(project, chosen.agent, chosen.wait)
    return code

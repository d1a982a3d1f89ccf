"""`toolgrove completion`: completion for your shell; commands, options, agents, tools and servers."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from toolgrove.cli.candidates import candidates

if TYPE_CHECKING:
    from toolgrove.cli.screen import Screen

SCRIPTS = {
    "bash": """\
_toolgrove() {
    local IFS=$'\\n'
    COMPREPLY=($(toolgrove completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _toolgrove toolgrove
""",
    "zsh": """\
#compdef toolgrove
_toolgrove() {
    local -a found
    found=("${(@f)$(toolgrove completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$found" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _toolgrove toolgrove
""",
    "fish": """\
complete -c toolgrove -a '(toolgrove completion --words (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
""",
}


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "completion",
        parents=[shared],
        description="Print the script that lets your shell complete commands, options, agents, tools and servers.",
    )
    parser.add_argument("shell", nargs="?", choices=tuple(SCRIPTS), metavar="SHELL", help="bash, zsh or fish")
    parser.add_argument("--words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run, quick=_complete)


def _complete(chosen: argparse.Namespace) -> int | None:
    """Print the words that could come next, which the script asks for."""
    if chosen.words is None:
        return None
    sys.stdout.writelines(f"{word}\n" for word in candidates(chosen.words))
    return 0


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Print the script."""
    if chosen.shell is None:
        raise ValueError("name your shell: toolgrove completion bash, zsh or fish")
    else:
        screen.out.out(SCRIPTS[chosen.shell], highlight=False, end="")
    return 0

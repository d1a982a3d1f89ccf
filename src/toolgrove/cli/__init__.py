"""The command line: start a project, check it, ask why, and call tools by hand.

A command is a module with `add`, which adds its parser; `program` runs the one that is asked for.

- ``advice``: what to change so that an agent gets a tool that it does not have
- ``approvals``: the command; calls that wait for a person
- ``arguments``: arguments of a tool as a person types them
- ``audit``: the command; what agents did, and whether the log is whole
- ``audit_log``: the audit log of a project, read beside the process that may write it
- ``backup``: the command; store, state and audit logs in one file
- ``browser``: showing a page in the person's browser
- ``call``: the command; one call, through the whole gate
- ``call_log``: a line for each call at the terminal where a project is served
- ``candidates``: what could come next on a command line
- ``carrier``: clients over stdio that are carried to the gateway
- ``checks``: what the doctor looks at
- ``completion``: the command; completion for your shell
- ``demo``: the command; a sample project, served at once
- ``desk``: what commands ask of a project, done here or by its gateway
- ``doctor``: the command; is everything in order
- ``examples``: what to type, command by command
- ``explain``: the command; why an agent has a tool or does not
- ``hang_up``: hearing that whoever talks to us over stdin is gone
- ``init``: the command; a project file to start from
- ``install``: the command; an agent in an MCP client's configuration
- ``last_exit``: serving until a signal comes, and ending within the budget
- ``login``: the command; a login to a server that asks for OAuth
- ``logout``: the command; that login forgotten
- ``migrate``: the command; the project in another store
- ``numbers``: whole numbers as people type them
- ``offered``: resources and prompts of an agent, as commands show them
- ``open``: the command; the console of the gateway that runs, signed in
- ``options``: the flags that every command has
- ``outcome``: runs a command, and turns failures into a paragraph and an exit code
- ``patience``: waiting for servers that are still starting
- ``pins``: the command; definitions of foreign tools, accepted or changed
- ``program``: picks the command, and loads what it needs
- ``project``: the project that a command works on
- ``project_names``: names in a project file, read without checking the file
- ``reader``: reads what was typed, and teaches where that makes no sense
- ``repl``: the command; tools called by hand, line by line
- ``restore``: the command; a backup in the place of what is there
- ``run``: has an agent's model work on a task
- ``schema``: the command; the JSON Schema of the project file
- ``screen``: how a command prints, for people and for machines
- ``serve``: the command; the project over HTTP
- ``several``: which project files are meant, and that several can be served together
- ``standing_by``: waiting while another process has a project
- ``stdio``: the command; one agent over stdin and stdout
- ``stdio_here``: that agent with the whole project in this process
- ``text``: times and names as people read them
- ``tokens``: the command; who may come in
- ``tools``: the command; what an agent has
- ``tree``: the command; the project's tree, or one in a file
- ``tree_file``: a tree in a file of exported nodes
"""

from collections.abc import Sequence
from importlib import import_module


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; an interrupt while it is being loaded ends it without a traceback."""
    try:
        code: int = import_module("toolgrove.cli.program").main(arguments)
    except KeyboardInterrupt:
        return 130
    return code

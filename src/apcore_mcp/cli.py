"""`apcore-mcp`: serve a directory of apcore modules."""

import argparse
import dataclasses
import os
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from apcore_mcp.options import IMPORT_BUDGET, Options
from apcore_mcp.version import __version__
from mcp_serve.diversion import diverted
from mcp_serve.own_loop import end_process_soon, run_to_the_end
from mcp_serve.signals import Stop


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("apcore-mcp", description="Serve a directory of apcore modules over MCP.")
    parser.add_argument("--extensions-dir", required=True, type=Path, metavar="DIR", help="directory of apcore modules")
    parser.add_argument(
        "--import-budget",
        type=float,
        default=IMPORT_BUDGET,
        metavar="SECONDS",
        help=f"leave a module out whose import takes longer (default: {IMPORT_BUDGET:g})",
    )
    defaults = {"log_level": "INFO", "version": __version__}
    for option in dataclasses.fields(Options):
        arguments = dict(option.metadata)
        if not arguments:
            continue
        default = defaults.get(option.name, option.default)
        if default:
            arguments["help"] += f" (default: {default})"
        is_repeatable = arguments.get("action") == "append"
        singular = option.name.rstrip("s") if is_repeatable else option.name
        parser.add_argument(f"--{singular.replace('_', '-')}", dest=option.name, default=default, **arguments)
    return parser


def _problem(extensions: Path, options: dict[str, Any]) -> str | None:
    if not extensions.exists():
        return f"extensions directory does not exist: {extensions}"
    if not extensions.is_dir():
        return f"extensions path is not a directory: {extensions}"
    if not os.access(extensions, os.R_OK | os.X_OK):
        return f"extensions directory is not readable: {extensions}"
    if not 1 <= options["port"] <= 65535:
        return "port must be between 1 and 65535"
    if not 0 < options["import_budget"] <= 600:
        return "import budget must be above 0 and at most 600 seconds"
    if options["name"] == "":
        return "server name must not be empty"
    return None


def main(argv: list[str] | None = None) -> int:
    """Exit code 0 after a shutdown, 1 for invalid arguments, 2 if the server cannot start."""
    options = vars(_parser().parse_args(argv))
    extensions = options.pop("extensions_dir")
    problem = _problem(extensions, options)
    if problem is not None:
        return _fail(problem, 1)
    # apcore and the SDK come in once the arguments are good: help and mistakes are answered at once.
    modules, bridge = import_module("apcore_mcp.extensions"), import_module("apcore_mcp.bridge")
    try:
        with diverted(1, 2):  # what modules print while they are imported is not MCP
            registry = modules.discovered(extensions, options.pop("import_budget"))
        run_to_the_end(bridge.Bridge(registry, Options(**options)).run, Stop(at_last=partial(os._exit, 0)))
    except ValueError as error:
        return _fail(str(error), 1)
    except Exception as error:
        return _fail(f"the server cannot start: {error}", 2)
    end_process_soon()  # a module's thread that never returns must not keep the process
    return 0


def _fail(problem: str, code: int) -> int:
    print(f"Error: {problem}", file=sys.stderr)  # noqa: T201
    return code

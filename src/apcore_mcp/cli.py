"""`apcore-mcp`: serve a Python file, or a directory of apcore modules and functions."""

import argparse
import dataclasses
import os
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from apcore_files.app_name import is_app
from apcore_files.budget import IMPORT_BUDGET
from apcore_mcp.options import Options
from apcore_mcp.version import __version__
from mcp_serve.diversion import diverted
from mcp_serve.own_loop import end_process_soon, run_to_the_end
from mcp_serve.signals import Stop


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("apcore-mcp", description="Serve Python functions and apcore modules over MCP.")
    served = parser.add_mutually_exclusive_group(required=True)
    served.add_argument("app", nargs="?", metavar="APP", help="a Python file: app.py, or app.py:registry")
    served.add_argument("--extensions-dir", type=Path, metavar="DIR", help="directory of modules and typed functions")
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


def _problem(app: str | None, extensions: Path | None, options: dict[str, Any]) -> str | None:
    if app is not None and not is_app(app):
        return f"{app} is not a Python file; name one, such as app.py or app.py:registry, or use --extensions-dir"
    if app is not None and options["dynamic"]:
        return "--dynamic watches a directory: leave it out, or use --extensions-dir"
    if extensions is not None and not extensions.exists():
        return f"extensions directory does not exist: {extensions}"
    if extensions is not None and not extensions.is_dir():
        return f"extensions path is not a directory: {extensions}"
    if extensions is not None and not os.access(extensions, os.R_OK | os.X_OK):
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
    app, extensions = options.pop("app"), options.pop("extensions_dir")
    problem = _problem(app, extensions, options)
    if problem is not None:
        return _fail(problem, 1)
    # apcore and the SDK come in once the arguments are good: help and mistakes are answered at once.
    kind, load = ("folder", "discovered") if app is None else ("app", "registry_in")
    files, bridge = import_module(f"apcore_files.{kind}"), import_module("apcore_mcp.bridge")
    try:
        with diverted(1, 2):  # what modules print while they are imported is not MCP
            registry = getattr(files, load)(app or extensions, options.pop("import_budget"))
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

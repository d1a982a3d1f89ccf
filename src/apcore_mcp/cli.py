"""`apcore-mcp`: serve a directory of apcore modules."""

import argparse
import dataclasses
import os
import sys
import threading
from pathlib import Path
from typing import Any

from apcore import Registry

from apcore_mcp.options import Options
from apcore_mcp.server.transport import diverted
from apcore_mcp.serving import serve
from apcore_mcp.version import __version__


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("apcore-mcp", description="Serve a directory of apcore modules over MCP.")
    parser.add_argument("--extensions-dir", required=True, type=Path, metavar="DIR", help="directory of apcore modules")
    defaults = {"log_level": "INFO", "version": __version__}
    for option in dataclasses.fields(Options):
        if arguments := dict(option.metadata):
            default = defaults.get(option.name, option.default)
            arguments["help"] += f" (default: {default})" if default else ""
            singular = option.name.rstrip("s") if arguments.get("action") == "append" else option.name
            parser.add_argument(f"--{singular.replace('_', '-')}", dest=option.name, default=default, **arguments)
    return parser


def _problem(extensions: Path, options: dict[str, Any]) -> str | None:
    checks = {
        f"extensions directory does not exist: {extensions}": extensions.exists(),
        f"extensions path is not a directory: {extensions}": extensions.is_dir(),
        f"extensions directory is not readable: {extensions}": os.access(extensions, os.R_OK | os.X_OK),
        "port must be between 1 and 65535": 1 <= options["port"] <= 65535,
        "server name must not be empty": options["name"] != "",
    }
    return next((text for text, met in checks.items() if not met), None)


def main(argv: list[str] | None = None) -> int:
    """Exit code 0 after a shutdown, 1 for invalid arguments, 2 if the server cannot start."""
    options = vars(_parser().parse_args(argv))
    extensions = options.pop("extensions_dir")
    if problem := _problem(extensions, options):
        return _fail(problem, 1)
    try:
        registry = Registry(extensions_dir=str(extensions))
        with diverted(1, 2):  # what modules print while they are imported is not MCP
            registry.discover()
        serve(registry, **options)
    except ValueError as error:
        return _fail(str(error), 1)
    except Exception as error:
        return _fail(f"the server cannot start: {error}", 2)
    end = threading.Timer(1, os._exit, args=[0])  # a module's thread that never returns must not keep the process
    end.daemon = True
    end.start()
    return 0


def _fail(problem: str, code: int) -> int:
    print(f"Error: {problem}", file=sys.stderr)  # noqa: T201
    return code

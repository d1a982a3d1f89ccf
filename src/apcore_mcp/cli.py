"""`apcore-mcp`: serve a directory of apcore modules."""

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from apcore import Registry

from apcore_mcp.options import MAX_NAME, Options
from apcore_mcp.serving import serve

INVALID, FAILED = 1, 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="apcore-mcp",
        description="Serve a directory of apcore modules over MCP.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--extensions-dir", required=True, metavar="DIR", help="directory of apcore modules")
    for option in dataclasses.fields(Options):
        if option.metadata:
            flag = "--" + option.name.replace("_", "-").removesuffix(
                "s" if "append" in option.metadata.values() else ""
            )
            parser.add_argument(flag, dest=option.name, default=option.default, **option.metadata)
    parser.set_defaults(log_level="INFO")
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
    if not options["name"]:
        return "server name must not be empty"
    if len(options["name"]) > MAX_NAME:
        return f"server name must not exceed {MAX_NAME} characters"
    return None


def main(argv: Sequence[str] | None = None) -> int:
    options = vars(_parser().parse_args(argv))
    extensions = Path(options.pop("extensions_dir"))
    problem = _problem(extensions, options)
    if problem is None:
        try:
            Options(**options)
        except ValueError as error:
            problem = str(error)
    if problem is not None:
        print(f"Error: {problem}", file=sys.stderr)  # noqa: T201
        return INVALID
    try:
        registry = Registry(extensions_dir=str(extensions))
        registry.discover()
        serve(registry, **options)
    except Exception as error:
        print(f"Error: cannot start: {error}", file=sys.stderr)  # noqa: T201
        return FAILED
    return 0

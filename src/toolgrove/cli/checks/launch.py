"""The exact command of a server, and whether it names the version of what it runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from toolgrove.cli.checks.literal import hidden
from toolgrove.config import McpServerConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class Launcher:
    """A program that fetches what it runs: how a version is written, what names a package, what takes another value."""

    pinned: re.Pattern[str]
    version: str
    verbs: tuple[str, ...] = ()
    naming: tuple[str, ...] = ()
    taking: tuple[str, ...] = ()


_NODE = Launcher(
    pinned=re.compile(r".+@\d"), version="@1.2.3", naming=("--package", "-p"), taking=("--registry", "-c", "--call")
)
_PYTHON = Launcher(
    pinned=re.compile(r".+(==|@)\d|.+ ?@ ?\w+\+?:"),
    version="==1.2.3",
    naming=("--from", "--spec"),
    taking=("--python", "-p", "--with", "--index-url", "--default-index", "--directory"),
)
_IMAGE = Launcher(
    pinned=re.compile(r".+(@sha256:[0-9a-f]{64}|:(?!latest$)[\w.-]+)$"),
    version=":1.2.3",
    verbs=("run",),
    taking=(
        *("-e", "--env", "--env-file", "-v", "--volume", "--mount", "--network", "--name", "-p", "--publish"),
        *("-w", "--workdir", "-u", "--user", "--entrypoint", "--add-host", "--platform", "-l", "--label"),
    ),
)
_LAUNCHERS = {
    "npx": _NODE,
    "bunx": _NODE,
    "pnpx": _NODE,
    "pnpm": replace(_NODE, verbs=("dlx",)),
    "yarn": replace(_NODE, verbs=("dlx",)),
    "bun": replace(_NODE, verbs=("x",)),
    "npm": replace(_NODE, verbs=("exec",)),
    "uvx": _PYTHON,
    "uv": replace(_PYTHON, verbs=("tool", "run")),
    "pipx": replace(_PYTHON, verbs=("run",)),
    "docker": _IMAGE,
    "podman": _IMAGE,
}
_LOCAL = re.compile(r"^(\.{0,2}/|[A-Za-z]:\\|file:)")


def shown(server: McpServerConfig) -> str:
    """What would be started or asked, references unfilled and literal keys hidden: people paste this elsewhere."""
    if server.command is None:
        return hidden(str(server.url))
    parts = [hidden(shlex.join((server.command, *server.args)))]
    if server.env:
        parts.append(f"env: {', '.join(server.env)}")
    if server.sandbox is not None:
        parts.append("in a sandbox" if server.sandbox.network else "in a sandbox without network")
    elif server.cwd is not None:
        parts.append(f"in: {server.cwd}")
    return "; ".join(parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Unpinned:
    """A package that is fetched in whatever version is newest that day, and how to name one."""

    package: str
    better: str


def unpinned(command: str, args: Sequence[str]) -> Unpinned | None:
    """What a command fetches without a version; None if it names one, or fetches nothing."""
    program = PurePath(command).name.removesuffix(".cmd").removesuffix(".exe")
    launcher = _LAUNCHERS.get(program)
    if launcher is None or tuple(args[: len(launcher.verbs)]) != launcher.verbs:
        return None
    package = _package(launcher, args[len(launcher.verbs) :])
    if package is None or _LOCAL.match(package) or launcher.pinned.match(package):
        return None
    name = package.removesuffix("@latest").removesuffix(":latest")
    return Unpinned(package=package, better=name + launcher.version)


def _package(launcher: Launcher, args: Sequence[str]) -> str | None:
    """The package among the arguments: what a flag names, else the first word that belongs to no flag."""
    words = iter(args)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag in launcher.naming:
            return value if equals else next(words, None)
        if flag in launcher.taking and not equals:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None

"""Runs a server under bubblewrap: it sees the system, its own program and what the operator adds, nothing else.

What is mounted later lies above what was mounted before, so the order of the arguments matters.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from toolgrove.config import SandboxConfig
from toolgrove.pool.mcp.child import Command
from toolgrove.pool.mcp.faults import Misconfigured

_SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc")))
_TEMPORARY = "/tmp"  # noqa: S108 (the server's own, inside)
_HOME = f"{_TEMPORARY}/home"
_CACHE = "/cache"
_ALONE = ("--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--tmpfs", _TEMPORARY)
_VARIABLES = {
    "HOME": _HOME,
    "TMPDIR": _TEMPORARY,
    "XDG_CACHE_HOME": _CACHE,
    "UV_CACHE_DIR": f"{_CACHE}/uv",
    "npm_config_cache": f"{_CACHE}/npm",
}
_INTERPRETERS = ("python3", "python", "node")
_MOST_LINKS = 40
_TRIAL = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ProjectFolders:
    """What a sandboxed server does not see: the project and its state; a cache for it stands in the state folder."""

    project: Path = Path()
    state: Path | None = None

    def hidden(self) -> list[Path]:
        """The folders as the system knows them, with the home folder of the user who runs us."""
        return [one.resolve() for one in (self.project, self.state, Path.home()) if one is not None]

    def cache(self, server: str) -> Path | None:
        """Where one server keeps what it downloads; none shares it, so that none can spoil it for another."""
        if self.state is None:
            return None
        caches = self.state.absolute() / "sandbox"
        try:
            for folder in (self.state, caches, caches / server):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            raise Misconfigured("is not started: there is no room for its cache in the state folder") from None
        return caches / server


NOWHERE = ProjectFolders()


@dataclass(frozen=True, kw_only=True, slots=True)
class Obstacle:
    """Why nothing can be sandboxed here: for everybody, and in the words of bubblewrap for the operator."""

    reason: str
    detail: str = ""


def obstacle() -> Obstacle | None:
    """What keeps bubblewrap from working on this machine; found out by running it once."""
    program = _bubblewrap()
    if not program:
        return Obstacle(reason="bubblewrap is not installed (apt install bubblewrap)")
    trial = [program, "--ro-bind", "/", "/", *_ALONE, "--", "true"]
    try:
        done = subprocess.run(trial, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return Obstacle(reason="bubblewrap does not work on this machine", detail=str(error))
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        return Obstacle(reason="bubblewrap does not work on this machine", detail=said[:400])
    return None


def _bubblewrap() -> str:
    return shutil.which("bwrap") or ""


def sandboxed(command: Command, sandbox: SandboxConfig, *, server: str, folders: ProjectFolders) -> Command:
    """The command that runs another one out of sight of the project; Misconfigured where that cannot be done."""
    if (found := obstacle()) is not None:
        raise Misconfigured(f"is not started: it must run in a sandbox, and {found.reason}")
    for index, path in enumerate(sandbox.paths):
        if not path.exists():
            raise Misconfigured(f"is not started: mcpServers.{server}.sandbox.paths[{index}] does not exist")
    program = _found(command, os.environ)
    hidden = folders.hidden()
    shown = [*_homes(program, hidden), *(path.absolute() for path in sandbox.paths)]
    state = [] if folders.state is None else [folders.state.resolve()]
    cache = folders.cache(server)
    words = [
        *_ALONE,
        *(("--share-net",) if sandbox.network else ()),
        *_bound(path for path in (*_SYSTEM, Path("/etc/resolv.conf").resolve()) if path.exists()),
        *_covered(hidden, _SYSTEM),
        *_bound(shown),
        *_covered(state, (*_SYSTEM, *shown)),
        *(("--bind", str(cache), _CACHE) if cache is not None else ("--tmpfs", _CACHE)),
        *("--dir", _HOME, "--chdir", _HOME),
        *("--", str(program), *command.args),
    ]
    return replace(command, program=_bubblewrap(), args=words, env=_VARIABLES | dict(command.env), cwd=None)


def _found(command: Command, ours: Mapping[str, str]) -> Path:
    """Where a program stands, as the system would find it outside."""
    near = command.cwd or Path.cwd()
    name = str(near / command.program) if os.sep in command.program else command.program
    place = shutil.which(name, path=command.environment(ours).get("PATH"))
    if place is None:
        raise Misconfigured("did not start: command not found")
    return Path(place).absolute()


def _homes(program: Path, hidden: Iterable[Path]) -> Iterator[Path]:
    """What has to be seen for a program to run; never a folder with something hidden in it, then the file alone."""
    for link in (*_links(program), program.resolve(), *_links(_interpreter(program))):
        home = _home(link.parent)
        yield link if any(one.is_relative_to(home.resolve()) for one in hidden) else home


def _links(program: Path) -> Iterator[Path]:
    """A program, what it is a link to, and so on."""
    for _ in range(_MOST_LINKS):
        yield program
        if not program.is_symlink():
            return
        program = Path(os.path.normpath(program.parent / program.readlink()))


def _interpreter(program: Path) -> Path:
    """What runs a program of a virtual environment: a link to the Python that it was made from."""
    beside = program.parent / "python"
    return beside if (program.parent.parent / "pyvenv.cfg").exists() and beside.exists() else program


def _home(folder: Path) -> Path:
    """The installation that a folder of programs belongs to, if it has an interpreter of its own; else the folder."""
    if folder.name != "bin":
        return folder
    own = any(
        (folder / name).resolve().parent == folder.resolve() for name in _INTERPRETERS if (folder / name).exists()
    )
    return folder.parent if own or (folder.parent / "pyvenv.cfg").exists() else folder


def _bound(paths: Iterable[Path]) -> Iterator[str]:
    for path in dict.fromkeys(paths):
        yield from ("--ro-bind", str(path), str(path))


def _covered(hidden: Iterable[Path], shown: Iterable[Path]) -> Iterator[str]:
    """Empty folders over what would show otherwise."""
    places = [path.resolve() for path in shown]
    for folder in hidden:
        if folder.is_dir() and any(folder.is_relative_to(place) for place in places):
            yield from ("--tmpfs", str(folder))

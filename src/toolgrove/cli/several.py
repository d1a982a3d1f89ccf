"""Which project files are meant, and that several of them can be served together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from toolgrove.cli.options import DEFAULT
from toolgrove.config import ConfigFile

_ENDINGS = (".yaml", ".yml")


def project_files(named: Sequence[Path]) -> list[Path]:
    """The files; a folder stands for those in it, and for those in the folders below it that have a usual name."""
    return [file for path in named for file in (_inside(path) if path.is_dir() else [path])]


def _inside(folder: Path) -> Iterator[Path]:
    here = sorted(path for path in folder.iterdir() if path.suffix in _ENDINGS and path.is_file())
    below = sorted(path / DEFAULT for path in folder.iterdir() if (path / DEFAULT).is_file())
    if not here and not below:
        raise ValueError(f"{folder} has no project file: neither NAME.yaml nor NAME/{DEFAULT}")
    yield from (*here, *below)


def check_apart(files: Sequence[ConfigFile]) -> None:
    """ValueError where two projects could not be told apart, or would share what is kept of them."""
    names: dict[str, ConfigFile] = {}
    folders: dict[Path, ConfigFile] = {}
    for file in files:
        project, state = file.config.project, file.config.state
        other = names.setdefault(project, file)
        if other is not file:
            raise ValueError(f"{other.path} and {file.path} are both called {project!r}; give one another 'project:'")
        sharing = file if state is None else folders.setdefault(state.absolute(), file)
        if sharing is not file:
            raise ValueError(
                f"{sharing.path} and {file.path} would share {state}, and with it tokens and approvals. "
                f"Add 'state: .toolgrove-{file.path.stem}' to {file.path}."
            )


def prefix_of(project: str) -> str:
    """Where a project is that is served beside others."""
    return f"/p/{quote(project, safe='')}"

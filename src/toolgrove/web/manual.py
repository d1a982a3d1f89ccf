"""The documentation of this very version, for the console: Markdown beside the package, or in the checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import anyio
from starlette.requests import Request

from toolgrove.errors import NotFound
from toolgrove.web import schemas
from toolgrove.web.routing import Handlers

PARTS: dict[str, tuple[str, ...]] = {
    "Start": ("tutorial-servers", "tutorial-api", "tutorial-functions"),
    "Concepts": ("concepts",),
    "How-to": (
        "gateway",
        "console",
        "pool",
        "cookbook",
        "runs",
        "tree",
        "quickstart",
        "modules",
        "serving",
        "clients",
        "openai",
        "embedding",
        "explorer",
        "from-apcore-mcp",
    ),
    "Operations": ("operations", "scale", "security"),
    "Reference": ("configuration", "cli", "http", "tree-tools", "tree-dsl", "glossary"),
    "Comparison": ("comparison",),
}
"""The pages for people who use Toolgrove; those for contributors stay in the repository."""
_FOLDERS = (Path(__file__).parents[1] / "manual", Path(__file__).parents[3] / "docs")


def manual_handlers() -> Handlers:
    """What answers the operations on documentation."""
    return {"manual": _contents, "manual_page": _page}


async def _contents(request: Request) -> schemas.ManualContents:
    titles = await anyio.to_thread.run_sync(_titles)
    return schemas.ManualContents(
        items=[
            schemas.ManualEntry(name=name, title=titles[name], part=part)
            for part, names in PARTS.items()
            for name in names
            if name in titles
        ]
    )


async def _page(request: Request) -> schemas.ManualPage:
    name = request.path_params["page"]
    titles = await anyio.to_thread.run_sync(_titles)
    if name not in titles:
        raise NotFound(f"The documentation has no page {name!r}.")
    text = await anyio.to_thread.run_sync(_text, name)
    return schemas.ManualPage(name=name, title=titles[name], text=text)


@cache
def _titles() -> dict[str, str]:
    """Every page that is there, by name; a page begins with its title."""
    names = [name for names in PARTS.values() for name in names]
    return {name: _text(name).partition("\n")[0].lstrip("# ") for name in names if _file(name).is_file()}


def _text(name: str) -> str:
    return _file(name).read_text(encoding="utf-8")


def _file(name: str) -> Path:
    folder = next((one for one in _FOLDERS if one.is_dir()), _FOLDERS[0])
    return folder / f"{name}.md"

"""The gateway has its own documentation to hand: every page for users, each link between them whole."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import httpx2
import pytest
import yaml

from toolgrove import Grove
from toolgrove.store.state import OPERATOR
from toolgrove.web.manual import PARTS

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
NAMES = [name for names in PARTS.values() for name in names]


async def test_pages_are_listed_and_read_by_the_operator_alone() -> None:
    async with Grove() as grove:
        app = grove.asgi_app()
        headers = {"Authorization": f"Bearer {grove.tokens.issue(OPERATOR, by='the test')}"}
        transport = httpx2.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http,
        ):
            assert (await http.get("/api/docs")).status_code == 401
            items = (await http.get("/api/docs", headers=headers)).json()["items"]
            assert [item["name"] for item in items] == NAMES
            for item in items:
                page = (await http.get(f"/api/docs/{item['name']}", headers=headers)).json()
                assert page["text"].startswith(f"# {item['title']}\n")
            for name in ("conformance", "..%2Fpyproject", "nonsense"):
                assert (await http.get(f"/api/docs/{name}", headers=headers)).status_code == 404


def test_the_manual_has_the_pages_of_the_site_that_are_not_for_contributors() -> None:
    text = re.sub(r"!!python\S+", "", (ROOT / "mkdocs.yml").read_text())
    parts = {part: pages for entry in yaml.safe_load(text)["nav"] for part, pages in entry.items()}
    parts.pop("Overview")
    parts.pop("Contributing")
    site = {part: pages if isinstance(pages, list) else [{part: pages}] for part, pages in parts.items()}
    assert {part: [f"{name}.md" for name in names] for part, names in PARTS.items()} == {
        part: [file for page in pages for file in page.values()] for part, pages in site.items()
    }


def test_the_wheel_carries_every_page() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert build["force-include"] == {f"docs/{name}.md": f"toolgrove/manual/{name}.md" for name in NAMES}

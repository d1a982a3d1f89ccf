"""Consoles of projects that one process serves: each under its own path, signed in on its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from playwright.sync_api import Browser, expect

from browser.conftest import PATIENCE
from browser.console.page import ConsolePage
from waiting import DEADLINE
from warm.command import Process
from web.gateway import toolgrove
from web.test_web_projects import greeting


def test_consoles_side_by_side_show_their_own_project_and_keep_their_own_sign_in(
    chromium: Browser, tmp_path: Path
) -> None:
    for name, agent in (("garden", "gardener"), ("my shop", "clerk")):
        (tmp_path / name).mkdir()
        config = {"project": name, "agents": {agent: {"tools": ["get_*"]}}}
        (tmp_path / name / "toolgrove.yaml").write_text(json.dumps(config))
    command = toolgrove("serve", str(tmp_path), "--port", "0", "--json")
    with Process(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        projects = greeting(process)["projects"]
        context = chromium.new_context(reduced_motion="reduce")
        context.set_default_timeout(PATIENCE)
        pages: dict[str, ConsolePage] = {}
        for name, told in projects.items():
            base, _, token = told["console"].partition("/console")
            page = pages[name] = ConsolePage(context.new_page(), base)
            page.load(token)
            page.expect_live()
        for name, agent in (("garden", "gardener"), ("my shop", "clerk")):
            page = pages[name]
            page.page.reload()
            page.expect_live()
            expect(page.by("project-name")).to_contain_text(name)
            page.go("agents")
            expect(page.page.locator("main").get_by_text(agent).first).to_be_visible()
            page.assert_silent()
        context.close()
        process.terminate()
        assert process.wait(timeout=DEADLINE) == 0

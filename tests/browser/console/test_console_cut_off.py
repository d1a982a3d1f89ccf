"""After a crash and a backup that was put back: the console tells what may have run, and where the log breaks."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest
from playwright.sync_api import expect

from browser.console.hand import Hand
from browser.console.page import ConsolePage, Visit
from faults.kit import Journal, error_of, fake, granted
from toolgrove import Config, Grove
from warm.command import Process
from web.gateway import Gateway, serving, toolgrove

pytestmark = pytest.mark.browser
PAY = {"text": "pay"}


class Troubled:
    """A project that was put back to an older state, and killed while a call was under way."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, folder / "grove.db"
        self._journal = Journal(folder / "journal")
        agents = {"writer": {"role": "editor", "tools": ["*"], "approve": ["up_hold"]}}
        servers = {"up": fake(journal=self._journal, changes=["hold"])}
        workspace = {"store": f"sqlite:{self.store.name}"}
        self.file = folder / "toolgrove.yaml"
        self.file.write_text(
            json.dumps({"state": "state", "workspace": workspace, "mcpServers": servers, "agents": agents})
        )

    async def happen(self) -> None:
        async with Grove(Config.load(self.file)) as grove:
            error = error_of(await (await granted(grove, "up_hold", "writer")).call("up_hold", PAY))
            await grove.approvals.decide(error["approvalId"], approve=True, by="grace")
        shutil.copy(self.store, self.folder / "backup.db")
        await self._opened()
        shutil.copy(self.folder / "backup.db", self.store)
        await self._opened()
        command = toolgrove("call", "writer", "up_hold", "text=pay", "--config", str(self.file))
        with Process(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            await self._journal.wrote("holds")
            process.kill()

    async def _opened(self) -> None:
        async with Grove(Config.load(self.file)) as grove:
            await (await grove.agent("writer")).call("get_node", {"nodeId": "root"})


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    troubled = Troubled(tmp_path_factory.mktemp("troubled"))
    with ThreadPoolExecutor(1) as aside:  # the browser has the event loop of this thread
        aside.submit(anyio.run, troubled.happen).result()
    with serving(troubled.folder, loud=True) as gateway:
        yield gateway


@pytest.fixture
def page(tab: Visit, troubled: Gateway) -> ConsolePage:
    page = tab(f"#{troubled.console.partition('#')[2]}", at=troubled)
    page.expect_live()
    return page


def test_who_is_asked_again_reads_that_the_call_may_have_run(page: ConsolePage, troubled: Gateway) -> None:
    writer = Hand(troubled, "writer")
    stopped = writer.refused("up_hold", **PAY)
    assert (stopped["code"], stopped["reason"]) == ("conflict", "outcome_unknown")
    asked = writer.refused("up_hold", **PAY)
    writer.close()
    page.go("approvals", asked["approvalId"])
    expect(page.by("approval-earlier")).to_contain_text("It may have run already")
    link = page.by("approval-earlier").get_by_role("link", name="Look at that call")
    expect(link).to_have_attribute("href", f"#/calls/{stopped['callId']}")
    page.assert_accessible("an approval that was asked for before a crash")


def test_calls_that_began_and_of_which_nobody_knows_the_end_are_listed(page: ConsolePage) -> None:
    page.go("audit")
    rows = page.by("records").locator("tbody tr")
    for outcome, told in (("begun", "it may have had its effect"), ("unknown", "it may have had its effect")):
        page.page.get_by_label("Outcome").select_option(outcome)
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text(f"up_hold{outcome}")
        rows.get_by_role("button").click()
        expect(page.by("call")).to_contain_text(told)
        page.page.go_back()


def test_a_log_that_was_put_back_shows_its_break(page: ConsolePage) -> None:
    page.go("audit")
    page.by("verify").click()
    expect(page.by("verified")).to_contain_text("Verified")
    expect(page.by("findings")).to_contain_text("marks a break: the log was put back to record")
    page.assert_accessible("a log with a break")


def test_the_latest_calls_are_calls_each_of_them_once(page: ConsolePage) -> None:
    latest = page.by("latest-calls").locator(".item")
    expect(latest.filter(has_text="up_hold").filter(has_text="unknown")).to_have_count(1)
    expect(latest.filter(has_text="begun")).to_have_count(0)
    for other in ("Token", "Configuration", "Audit log", "Approval"):
        expect(latest.filter(has_text=other)).to_have_count(0)

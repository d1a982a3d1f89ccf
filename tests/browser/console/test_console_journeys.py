"""What a person does with calls that wait, with figures, and with links: from where it is seen to where it leads."""

import re

import httpx2
import pytest
from playwright.sync_api import expect

from browser.console.hand import Hand, branch
from browser.console.page import Visit
from web.gateway import Gateway

pytestmark = pytest.mark.browser


def test_a_call_is_approved_by_a_key_and_the_page_shows_what_came_of_it(visit: Visit, writer: Hand) -> None:
    writer.plant(branch("thistle"))
    asked = writer.refused("remove_node", nodeId="thistle")
    page = visit("approvals", asked["approvalId"])
    expect(page.page).to_have_title(re.compile(r"^\(\d+\) Approvals"))
    expect(page.by("approval-effect")).to_contain_text("thistle")
    arguments, approve = page.by("approval-arguments").bounding_box(), page.by("approve").bounding_box()
    assert arguments is not None
    assert approve is not None
    assert arguments["y"] < approve["y"]  # first what it is about, then the buttons
    page.page.keyboard.press("a")
    expect(page.by("decided")).to_contain_text("approved")
    writer.ok("remove_node", nodeId="thistle")
    expect(page.by("approval-result")).to_contain_text("1 node changed: thistle")
    page.by("approval-result").get_by_role("link", name="Look at the call").click()
    expect(page.by("call-changes")).to_contain_text("Removed thistle")
    page.by("run-again").click()
    expect(page.field("nodeId")).to_have_value("thistle")


def test_a_key_rejects_and_typing_a_reason_decides_nothing(visit: Visit, writer: Hand) -> None:
    writer.plant(branch("nettle"))
    page = visit("approvals", writer.refused("remove_node", nodeId="nettle")["approvalId"])
    page.by("reason").press_sequentially("a rare one")
    expect(page.by("approve")).to_be_visible()
    page.page.get_by_role("heading", name="Approvals").click()
    page.page.keyboard.press("r")
    expect(page.by("decided")).to_contain_text("rejected")
    assert "a rare one" in writer.refused("remove_node", nodeId="nettle")["message"]


def test_the_operator_approves_and_runs_in_the_playground_at_once(visit: Visit, writer: Hand) -> None:
    writer.plant(branch("dandelion"))
    page = visit("try", "writer", "remove_node")
    page.field("nodeId").fill("dandelion")
    page.field("versionToken").fill(writer.version())
    page.by("run").click()
    confirm = page.by("confirm")
    expect(confirm.or_(page.by("result-waiting"))).to_be_visible()
    if confirm.is_visible():
        confirm.get_by_role("button").last.click()
    expect(page.by("result")).to_have_attribute("data-status", "waiting")
    page.assert_accessible("a call that waits")
    page.by("approve-and-run").click()
    expect(page.by("result")).to_have_attribute("data-status", "done")
    assert writer.refused("get_node", nodeId="dandelion")["code"] == "not_found"


def test_figures_lead_to_the_very_calls_that_they_count(visit: Visit, writer: Hand) -> None:
    writer.refused("get_node", nodeId="nowhere at all")
    page = visit()
    failed = page.by("figures").get_by_role("link", name=re.compile("Failed, last hour"))
    expect(failed).not_to_contain_text("no failures")
    count = int(failed.locator(".figure-value").inner_text())
    failed.click()
    expect(page.field("Outcome")).to_have_value("failure")
    rows = page.by("records").locator("tbody tr")
    expect(rows.filter(has_text="nowhere at all").first).to_be_visible()
    assert rows.count() == min(count, 50)
    page.field("Text").fill("NOWHERE AT")
    expect(rows.filter(has_not_text="nowhere at all")).to_have_count(0)
    shared = page.page.url.partition("#")[2]
    assert "outcome=failure" in shared
    page.by("clear").click()
    page.by("follow").check()
    writer.ok("list_bookmarks")
    expect(rows.first).to_contain_text("list_bookmarks")


def test_a_run_is_a_timeline_that_leads_to_its_calls(visit: Visit, gateway: Gateway) -> None:
    calls = [{"tool": "get_node", "arguments": {"nodeId": "root"}}, {"tool": "get_node", "arguments": {"nodeId": "no"}}]
    with httpx2.Client(base_url=gateway.base, headers=gateway.headers("writer")) as http:
        assert http.post("/agents/writer/runs", json={"calls": calls}).status_code == 200
    page = visit("runs")
    page.by("run-row").first.click()
    moments = page.by("timeline").locator("li")
    expect(moments).to_have_count(2)
    expect(page.by("run-usage")).to_contain_text("2 calls, 1 of its own failed")
    page.assert_accessible("a run")
    moments.first.get_by_role("link").click()
    expect(page.by("call")).to_have_attribute("data-outcome", "success")


def test_the_first_steps_tick_themselves_and_can_be_hidden(visit: Visit) -> None:
    page = visit()
    expect(page.by("project-name")).to_contain_text("garden")
    expect(page.page.get_by_role("banner")).to_contain_text("Toolgrove")
    page.by("step-access").click()
    page.go()
    expect(page.by("step-access")).to_have_attribute("data-done", "true")
    page.by("dismiss-welcome").click()
    expect(page.by("welcome")).to_have_count(0)
    page.page.reload()
    expect(page.by("figures")).to_be_visible()
    expect(page.by("welcome")).to_have_count(0)


def test_an_address_that_leads_nowhere_says_so(visit: Visit) -> None:
    page = visit()
    page.page.evaluate("location.hash = '#/nonsense'")
    expect(page.by("unknown")).to_contain_text("There is no page at this address")
    page.page.evaluate("location.hash = '#/calls/c0-0'")
    expect(page.by("no-call")).to_be_visible()
    page.forgive_refusals()

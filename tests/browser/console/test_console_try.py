"""Any tool, run as any agent, through the same gate: progress, cancelling, questions, refusals."""

import re

import pytest
from playwright.sync_api import expect

from browser.console.page import ConsolePage, Visit
from browser.modules import EVIL, HUGE
from e2e.modules import Journal
from waiting import wait_until

pytestmark = pytest.mark.browser


def status(page: ConsolePage, wanted: str) -> None:
    expect(page.by("result")).to_have_attribute("data-status", wanted)


def test_a_tool_runs_as_the_agent_that_was_chosen(visit: Visit) -> None:
    page = visit("try", "writer")
    page.field("Search tools").fill("get_node")
    page.page.locator('[data-tool="get_node"]').click()
    page.field("nodeId").fill("root")
    page.by("run").click()
    status(page, "done")
    expect(page.by("result-value")).to_contain_text("childrenCount")
    page.field("nodeId").fill("nowhere")
    page.page.keyboard.press("Control+Enter")
    status(page, "failed")
    expect(page.by("result-error")).to_contain_text("No node has the id")
    page.field("As agent").select_option("reader")
    expect(page.page.locator('[data-tool="add_child"]')).to_have_count(0)
    page.go("try", "reader", "add_child")
    expect(page.page.get_by_role("main")).to_contain_text("reader has no tool add_child")


def test_code_for_elsewhere_names_the_agents_endpoint_and_a_place_for_its_token(visit: Visit) -> None:
    page = visit("try", "writer", "get_node")
    page.tab("Code").click()
    expect(page.by("code")).to_contain_text("/agents/writer/mcp")
    expect(page.by("code")).to_contain_text("Authorization: Bearer TOKEN")
    page.tab("Python").click()
    expect(page.by("code")).to_contain_text('"Authorization": "Bearer TOKEN"')


def test_progress_shows_and_a_running_call_can_be_cancelled(visit: Visit, upstream_journal: Journal) -> None:
    page = visit("try", "writer", "up_reports_build")
    page.by("run").click()
    expect(page.page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", re.compile(r"[1-9]\d*"))
    page.page.keyboard.press("Escape")
    status(page, "cancelled")
    page.go("try", "writer", "up_work_wait")
    page.by("run").click()
    wait_until(lambda: "waiting" in upstream_journal)
    page.by("cancel").click()
    status(page, "cancelled")
    wait_until(lambda: "cancelled" in upstream_journal)


def test_a_question_is_answered_in_the_middle_of_a_call(visit: Visit) -> None:
    page = visit("try", "writer", "trips-plan")
    page.by("run").click()
    expect(page.by("question")).to_contain_text("How do you like to travel in Lisbon?")
    page.by("question").get_by_label("pace").select_option(label="fast")
    page.button("Answer").click()
    status(page, "done")
    expect(page.by("result-value")).to_contain_text("Tram 28")


def test_a_dangerous_tool_asks_once_more_and_a_held_one_leads_to_the_inbox(
    visit: Visit, upstream_journal: Journal
) -> None:
    page = visit("try", "writer", "up_files_wipe")
    page.by("run").click()
    expect(page.by("confirm")).to_be_visible()
    page.button("Back").click()
    page.go("try", "writer", "up_data_table")
    page.by("run").click()
    status(page, "waiting")
    page.by("needs-approval").get_by_role("link").click()
    expect(page.by("approval-detail")).to_have_attribute("data-state", "pending")
    page.by("approve").click()
    expect(page.by("decided")).to_be_visible()
    page.go("try", "writer", "up_data_table")
    page.by("run").click()
    status(page, "done")
    expect(page.by("result-value")).to_contain_text("row 2")
    assert "wiped" not in upstream_journal


def test_hostile_tools_and_their_results_are_text(visit: Visit) -> None:
    page = visit("try", "writer", "up_hostile_result")
    expect(page.by("tool-detail")).to_contain_text(EVIL)
    page.by("run").click()
    insist = page.button("Send anyway")
    expect(page.by("result-value").or_(insist)).to_be_visible()
    if insist.is_visible():
        insist.click()
    status(page, "done")
    expect(page.by("result-value").locator("img")).to_have_count(1)
    page.tab("Raw JSON").click()
    expect(page.by("result-value")).to_contain_text(f'"huge": {HUGE}')
    expect(page.by("result-value")).to_contain_text('"__proto__"')

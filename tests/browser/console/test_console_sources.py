"""Sources: how each stands and why, what it offers, who has it; and everything is found by name."""

import re

import pytest
from playwright.sync_api import expect

from browser.console.hand import Hand, branch
from browser.console.page import Visit

pytestmark = pytest.mark.browser


def test_a_source_that_is_down_says_why_and_each_tool_who_has_it(visit: Visit, writer: Hand) -> None:
    writer.ok("get_node", nodeId="root")
    page = visit("sources")
    rows = page.by("source-row")
    expect(rows.filter(has_text="down")).to_contain_text("the server")
    expect(page.page.locator('[data-source="workspace"]')).to_contain_text("built in")
    page.page.get_by_role("link", name="down", exact=True).click()
    expect(page.by("source-problem")).to_contain_text("It is down")
    expect(page.by("where")).to_have_text("/nonexistent/server")
    page.by("restart").click()
    expect(page.by("toast")).to_contain_text("down was started again")
    page.page.get_by_role("link", name="All sources").click()
    page.page.get_by_role("link", name="up", exact=True).click()
    page.tab("Who has what").click()
    standing = page.by("matrix").locator('[data-tool="up_data_table"] [data-agent="writer"]')
    expect(standing).to_have_text("asks first")
    expect(page.by("matrix").locator('[data-tool="up_files_wipe"] [data-agent="reader"]')).to_have_text("hidden")
    page.by("matrix").get_by_role("link", name="up_data_table", exact=True).click()
    expect(page.by("tool-sheet")).to_contain_text("writer (asks first)")
    expect(page.by("tool-sheet")).to_contain_text("inputSchema")
    page.go("sources", "up", "up_nonsense")
    expect(page.by("no-such-tool")).to_have_text("up has no tool up_nonsense")


def test_figures_of_a_tool_lead_to_its_calls(visit: Visit, writer: Hand) -> None:
    writer.refused("get_node", nodeId="nobody-has-this-id")
    page = visit("sources", "workspace")
    failed = page.by("source-tools").locator('[data-tool="get_node"] [data-label="Failed"] a')
    failed.click()
    expect(page.page).to_have_url(re.compile(r"#/audit\?.*toolPart=get_node.*outcome=failure"))
    expect(page.by("records")).to_contain_text("get_node")


def test_the_old_address_of_pins_leads_to_sources(visit: Visit) -> None:
    page = visit()
    page.page.evaluate("location.hash = '#/pins'")
    expect(page.by("sources")).to_be_visible()


def test_anything_is_found_by_its_name(visit: Visit, writer: Hand) -> None:
    writer.plant(branch("palette-plum", name="Plum tree"))
    page = visit()
    press = page.page.keyboard.press
    for name, kind, arrived in (
        ("Plum tr", "node", r"#/tree/\w+/palette-plum"),
        ("up_data_table", "tool", r"#/sources/up/up_data_table"),
        ("Playground as reader", "action", r"#/try/reader"),
        ("Sources", "page", r"#/sources"),
        ("workspace", "source", r"#/sources/workspace"),
        ("The selection language", "docs", r"#/docs/tree-dsl"),
        ("nothing-is-called-so", "search", r"#/audit\?text=nothing-is-called-so"),
    ):
        press("Control+k")
        page.by("palette-field").fill(name)
        found = page.page.locator(f'[data-testid=found][data-kind="{kind}"]').first
        expect(found).to_be_visible()
        found.click()
        expect(page.by("palette")).to_have_count(0)
        expect(page.page).to_have_url(re.compile(arrived))
        if kind == "tool":
            expect(page.by("tool-sheet")).to_be_visible()
        press("Escape")
        expect(page.page.locator("dialog[open]")).to_have_count(0)  # with one there, the palette stays closed
    press("Control+k")
    page.by("palette-field").fill("plum")
    expect(page.by("found").first).to_have_attribute("data-kind", "node")
    page.by("palette-field").fill("reader")
    expect(page.by("found").first).to_have_attribute("aria-selected", "true")
    press("Enter")
    expect(page.by("agent-screen")).to_be_visible()


def test_every_title_leads_to_the_docs_which_are_read_in_the_console(visit: Visit) -> None:
    page = visit("sources")
    page.by("learn-more").click()
    manual = page.by("manual")
    expect(manual).to_have_attribute("data-page", "pool")
    expect(manual.get_by_role("heading", name="The pool")).to_be_visible()
    manual.get_by_role("link", name="Configuration", exact=True).last.click()
    expect(manual).to_have_attribute("data-page", "configuration")
    page.assert_accessible("the documentation")
    for view in ("agents", "tree", "approvals", "sources", "audit", "try", "runs"):
        page.go(view)
        expect(page.by("learn-more")).to_have_attribute("href", re.compile(r"^#/docs/[\w-]+$"))
    page.by("open-docs").click()
    expect(manual).to_have_attribute("data-page", "concepts")
    expect(page.by("version")).to_be_visible()
    expect(page.by("project-name")).to_have_attribute("title", re.compile(r"/.*\.(json|yaml)$"))


def test_on_a_phone_everything_is_found_and_nothing_is_cut_off(visit: Visit) -> None:
    page = visit("agents", "reader", width=390)
    page.by("find-on-phone").click()
    page.by("palette-field").fill("up_data_table")
    page.page.locator('[data-testid=found][data-kind="tool"]').first.click()
    expect(page.by("tool-sheet")).to_be_visible()
    page.page.keyboard.press("Escape")
    names = page.page.locator(".nav-name")
    assert names.evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth).length") == 0
    assert page.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_tools_to_play_with_stand_by_source_with_what_should_make_one_stop_and_earlier_calls_come_back(
    visit: Visit,
) -> None:
    page = visit("try", "writer")
    group = page.page.locator('[data-testid=tool-group][data-source="workspace"]')
    expect(group.locator('[data-tool="remove_node"]')).to_contain_text("needs approval")
    expect(group.locator('[data-tool="get_node"]')).not_to_contain_text("needs approval")
    page.go("try", "writer", "get_node")
    page.field("nodeId").fill("root")
    page.by("run").click()
    expect(page.by("result")).to_have_attribute("data-status", "done")
    page.go("try", "writer", "list_tags")
    page.by("open-history").click()
    page.by("history-entry").filter(has_text="get_node").get_by_role("button", name="Restore get_node").click()
    expect(page.field("nodeId")).to_have_value("root")

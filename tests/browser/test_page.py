"""The page around the calls: list, detail, links, history, themes, keys, small screens."""

import base64
import json
import re

import pytest
from apcore import Registry
from playwright.sync_api import expect

from browser.modules import Divide
from browser.screen import Visit
from e2e.modules import Journal

pytestmark = [pytest.mark.browser, pytest.mark.requirement("FR-EXPLORER-001")]


@pytest.mark.requirement("FR-EXPLORER-002", "FR-EXPLORER-003")
def test_the_list_and_the_detail_show_what_the_server_says(visit: Visit, samples: Registry) -> None:
    screen = visit(name="sample-server", version="3.2.1")
    expect(screen.by("tool-count")).to_have_text(f"{len(samples.list())} tools")
    expect(screen.page.get_by_role("banner")).to_contain_text("sample-server3.2.1")
    names = screen.by("tool-link").evaluate_all("links => links.map(link => link.dataset.tool)")
    assert sorted(names) == sorted(samples.list())
    screen.by("search").fill("way to pay")
    expect(screen.by("tool-link")).to_have_count(1)
    screen.by("tool-link").click()
    expect(screen.by("tool-detail")).to_contain_text("Create an order with items and a way to pay.")
    screen.tab("Documentation").click()
    expect(screen.by("documentation").get_by_role("link")).to_have_attribute("href", "https://example.org/rules")
    screen.page.get_by_role("button", name="Try it").click()
    expect(screen.field("sku")).to_have_value("ABC-1")
    screen.tab("Schema").click()
    expect(screen.page.get_by_label("Input schema", exact=True).first).to_contain_text('"discriminator"')


@pytest.mark.requirement("FR-EXPLORER-005")
def test_one_file_is_the_whole_page(visit: Visit) -> None:
    screen = visit()
    asked: list[tuple[str, str]] = []
    screen.page.on("request", lambda request: asked.append((request.resource_type, request.url)))
    screen.page.reload()
    expect(screen.by("live-state")).to_have_text("Live")
    fetched = {(kind, url.removeprefix(screen.address.base)) for kind, url in asked if not url.startswith("data:")}
    assert fetched == {
        ("document", "/explorer/"),
        ("fetch", "/explorer/info"),
        ("fetch", "/explorer/tools"),
        ("fetch", "/mcp"),
    }


@pytest.mark.requirement("FR-EXPLORER-004")
def test_without_permission_the_page_shows_but_does_not_run(visit: Visit, journal: Journal) -> None:
    screen = visit("#/tool/files.wipe", allow_execute=False)
    expect(screen.by("run-off")).to_be_visible()
    expect(screen.by("run")).to_be_disabled()
    screen.page.keyboard.press("Control+Enter")
    expect(screen.by("confirm")).to_have_count(0)
    call = "{method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'}"
    answer = screen.page.evaluate(f"fetch('tools/files.wipe/call', {call}).then(answer => answer.json())")
    assert answer == {"error": "Tool execution is disabled"}
    assert journal.lines == []
    assert len(screen.noise) == 1
    assert "403" in screen.noise.pop()


@pytest.mark.parametrize("prefix", ["/custom", "/deep/er/"])
@pytest.mark.requirement("FR-EXPLORER-006")
def test_the_page_works_under_any_prefix(visit: Visit, prefix: str) -> None:
    screen = visit(explorer_prefix=prefix)
    expect(screen.by("live-state")).to_have_text("Live")
    screen.open("data.table")
    screen.run()
    assert json.loads(screen.raw_result())["rows"][2] == {"name": "row 2", "square": 4}
    screen.page.goto(screen.url.rstrip("/"))
    assert screen.page.url == screen.url


@pytest.mark.requirement("FR-DYNAMIC-001", "FR-DYNAMIC-002")
def test_the_list_follows_the_registry_live(visit: Visit, samples: Registry, journal: Journal) -> None:
    screen = visit()
    expect(screen.by("live-state")).to_have_text("Live")
    samples.register("math.again", Divide(journal))
    added = screen.page.locator("[data-tool='math.again']")
    expect(added).to_be_visible()
    expect(screen.by("toast")).to_have_text("Tool list updated: 1 new")
    screen.open("math.again")
    samples.unregister("math.again")
    expect(added).to_have_count(0)
    expect(screen.by("tool-error")).to_be_visible()
    assert {"404" in line for line in screen.noise} == {True}
    screen.forgive_refusals()


def test_a_deep_link_fills_the_form_and_runs_nothing(visit: Visit, journal: Journal) -> None:
    arguments = base64.urlsafe_b64encode(b'{"customer":{"name":"Linked"},"extra":1}').decode().rstrip("=")
    screen = visit(f"#/tool/orders.create?args={arguments}")
    expect(screen.field("name")).to_have_value("Linked")
    screen.expect_status("idle")
    screen.field("name").fill("Changed")
    link = screen.copied("copy-link")
    copied = link.partition("?args=")[2]
    shared = json.loads(base64.urlsafe_b64decode(copied + "=" * (-len(copied) % 4)))
    assert shared["customer"]["name"] == "Changed"
    assert journal.lines == []


def test_history_restores_runs_again_and_survives_a_reload(visit: Visit) -> None:
    screen = visit()
    screen.open("math.divide")
    screen.field("dividend").fill("8")
    screen.field("divisor").fill("2")
    screen.run()
    screen.open("data.table")
    screen.page.reload()
    screen.by("open-history").click()
    screen.button("Restore math.divide").click()
    expect(screen.field("dividend")).to_have_value("8")
    screen.expect_status("idle")
    screen.by("open-history").click()
    screen.button("Run again: math.divide").click()
    screen.expect_status("done")
    screen.by("open-history").click()
    expect(screen.by("history-entry")).to_have_count(2)
    screen.button("Clear history").click()
    expect(screen.by("history-entry")).to_have_count(0)


def test_the_theme_follows_the_system_until_one_is_chosen_and_remembered(visit: Visit) -> None:
    screen = visit(theme="dark")
    body, colour = screen.page.locator("body"), "background-color"
    dark = screen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    screen.page.emulate_media(color_scheme="light")
    expect(body).not_to_have_css(colour, dark)
    screen.page.get_by_role("radio", name="Dark theme").check(force=True)
    expect(body).to_have_css(colour, dark)
    screen.page.reload()
    expect(screen.by("tool-count")).to_be_visible()
    expect(body).to_have_css(colour, dark)


def test_the_keyboard_alone_is_enough(visit: Visit, journal: Journal) -> None:
    screen = visit()
    keyboard = screen.page.keyboard
    keyboard.press("/")
    expect(screen.by("search")).to_be_focused()
    keyboard.type("divide")
    expect(screen.by("tool-link")).to_have_count(1)
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    expect(screen.by("tool-detail")).to_be_visible()
    dividend = screen.field("dividend")
    for _ in range(20):
        if dividend.evaluate("field => field === document.activeElement"):
            break
        keyboard.press("Tab")
    expect(dividend).to_be_focused()
    keyboard.type("9")
    keyboard.press("Tab")
    expect(screen.field("divisor")).to_be_focused()
    keyboard.type("3")
    keyboard.press("Control+Enter")
    screen.expect_status("done")
    expect(screen.by("result-value")).to_contain_text("3")
    keyboard.press("Tab")
    keyboard.press("?")
    expect(screen.by("help")).to_be_visible()
    keyboard.press("Escape")
    expect(screen.by("help")).to_have_count(0)


def test_a_phone_goes_from_the_list_to_a_result_and_back(visit: Visit) -> None:
    screen = visit(width=360)
    screen.page.locator("[data-tool='data.table']").click()
    expect(screen.page.get_by_role("heading", level=1)).to_be_focused()
    expect(screen.by("search")).to_be_hidden()
    screen.run()
    expect(screen.by("result-value")).to_be_in_viewport()
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= 360
    screen.page.get_by_role("link", name="All tools").click()
    expect(screen.by("search")).to_be_visible()
    expect(screen.page.locator("[data-tool='data.table']")).to_be_focused()


def test_the_title_names_the_tool(visit: Visit) -> None:
    screen = visit("#/tool/data.table")
    expect(screen.page).to_have_title(re.compile("^data.table · apcore-mcp"))

"""The first minute of a newcomer, in the sample project that `toolgrove demo` starts."""

import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from browser.conftest import PATIENCE
from browser.console.page import ConsolePage
from demo.running import demo
from e2e.wire import call_body, messages, modern_headers

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with demo(tmp_path_factory.mktemp("sample")) as greeting:
        yield greeting


def opened(chromium: Browser, sample: dict[str, Any]) -> ConsolePage:
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(2 * PATIENCE)
    base, _, token = sample["console"].partition("/console")
    page = ConsolePage(context.new_page(), base)
    page.load(token)
    page.expect_live()
    return page


def test_a_newcomer_takes_the_four_steps_and_each_ticks_itself(chromium: Browser, sample: dict[str, Any]) -> None:
    page = opened(chromium, sample)
    expect(page.page.get_by_role("main")).to_contain_text(
        "Toolgrove gives every agent exactly the tools it should have"
    )
    expect(page.by("welcome").get_by_role("link")).to_have_count(4)
    page.assert_accessible("the first minute")

    page.by("step-approve").click()
    expect(page.by("approval-sends")).to_contain_text("/orders")
    page.page.keyboard.press("a")
    expect(page.by("approval-result")).to_contain_text('"order": 1001')  # the gardener went on by itself
    page.by("nav-overview").click()
    expect(page.by("step-approve")).to_have_attribute("data-done", "true")

    page.by("step-access").click()
    order = page.by("verdicts").locator("tbody tr").filter(has_text="shop_place_order")
    expect(order).to_contain_text("Not listed in tools")
    page.by("nav-overview").click()
    expect(page.by("step-access")).to_have_attribute("data-done", "true")

    page.by("step-watch").click()
    expect(page.by("tree-mark").first).to_contain_text("sprinkler", timeout=2 * PATIENCE)
    page.by("nav-overview").click()
    expect(page.by("step-watch")).to_have_attribute("data-done", "true")

    expect(page.by("step-connect")).to_have_attribute("data-done", "false")
    page.by("step-connect").click()
    expect(page.by("mcp-url")).to_have_text(sample["agents"]["gardener"])
    headers = {"Authorization": f"Bearer {sample['tokens']['gardener']}", **modern_headers("tools/call", "get_node")}
    mine = httpx2.post(sample["agents"]["gardener"], json=call_body("get_node", {"nodeId": "beds"}), headers=headers)
    assert "error" not in messages(mine)[-1]
    page.by("nav-overview").click()
    expect(page.by("step-connect")).to_have_attribute("data-done", "true", timeout=2 * PATIENCE)
    expect(page.by("welcome")).to_contain_text("You have seen it all")
    page.assert_silent()
    page.page.context.close()


def test_charts_live_from_the_start_and_the_sprinkler_drowns_nobody(chromium: Browser, sample: dict[str, Any]) -> None:
    page = opened(chromium, sample)
    latest = page.by("latest-calls").locator(".item")
    expect(latest.filter(has_text=re.compile(r"sprinkler\s*× \d+"))).to_have_count(1)
    expect(latest.filter(has_text="shop_place_order").first).to_be_visible()
    page.field("Span").select_option("day")
    bars = page.page.locator('[data-testid=bar]:not([data-calls="0"])')
    expect(bars.nth(30)).to_be_attached()  # most of the 72 stretches of a day had calls
    page.assert_silent()
    page.page.context.close()

"""axe finds no WCAG A or AA fault in any main state, light and dark, wide and narrow."""

import pytest
from playwright.sync_api import expect

from browser.screen import Visit

pytestmark = [pytest.mark.browser, pytest.mark.requirement("FR-EXPLORER-001")]


@pytest.mark.parametrize("width", [1280, 360])
def test_every_state_is_accessible(visit: Visit, width: int) -> None:
    screen = visit(width=width)
    screen.assert_accessible("list")
    screen.open("orders.create")
    screen.assert_accessible("detail")
    screen.start()
    expect(screen.by("problems")).to_be_visible()
    screen.assert_accessible("form error")
    screen.open("data.table")
    screen.run()
    screen.assert_accessible("result")
    screen.open("math.divide")
    screen.field("dividend").fill("1")
    screen.field("divisor").fill("13")
    screen.run("failed")
    screen.assert_accessible("failure")
    screen.open("reports.build")
    screen.start()
    expect(screen.page.get_by_role("progressbar")).to_be_visible()
    screen.assert_accessible("running")
    screen.page.keyboard.press("Escape")
    screen.open("files.wipe")
    screen.start()
    expect(screen.by("confirm")).to_be_visible()
    screen.assert_accessible("confirm dialog")
    screen.page.keyboard.press("Escape")
    screen.open("travel.book")
    screen.field("to").fill("Lisbon")
    screen.run("asking")
    screen.assert_accessible("question dialog")
    screen.button("Decline").click()
    screen.expect_status("done")
    screen.open("hostile.markup")
    screen.assert_accessible("hostile tool")

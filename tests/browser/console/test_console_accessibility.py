"""axe finds no WCAG A or AA fault in any view, light and dark, wide and narrow; the keyboard reaches everything."""

import pytest
from playwright.sync_api import expect

from browser.console.hand import Hand, branch
from browser.console.page import Visit

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [1280, 360])
def test_every_view_is_accessible(visit: Visit, house: str, writer: Hand, width: int) -> None:
    asked = writer.refused("remove_node", nodeId=house)
    page = visit(width=width)
    expect(page.by("figures")).to_be_visible()
    expect(page.by("latest-calls").locator("li").first).to_be_visible()
    page.assert_accessible("overview")
    page.go("agents", "reader")
    expect(page.by("verdicts")).to_be_visible()
    page.assert_accessible("agents")
    page.go("tree", "writer")
    expect(page.row(house)).to_be_visible()
    page.assert_accessible("tree")
    page.go("tree", "writer", f"{house}-kitchen")
    expect(page.by("node")).to_be_visible()
    writer.ok("update_payload_property", nodeId=f"{house}-kitchen", propertyName="status", newValue=f"width {width}")
    expect(page.value("status")).to_have_text(f"width {width}")
    page.button("Edit size").click()
    page.assert_accessible("node")
    page.button("Cancel").click()
    page.by("node-add").click()
    expect(page.by("add-dialog")).to_be_visible()
    page.assert_accessible("add dialog")
    page.page.keyboard.press("Escape")
    page.tab("Snapshots").click()
    page.field("Label of the new snapshot").fill(f"width {width}")
    page.button("Take").click()
    writer.ok("update_payload_property", nodeId=f"{house}-kitchen", propertyName="status", newValue="done")
    page.by("compare").click()
    expect(page.by("difference")).to_be_visible()
    page.assert_accessible("snapshots")
    page.by("dsl").fill("a = = b")
    page.by("dsl").press("Enter")
    if width > 800:
        expect(page.by("query-error")).to_be_visible()
    page.assert_accessible("query error")
    page.go("approvals", asked["approvalId"])
    expect(page.by("approve")).to_be_visible()
    page.assert_accessible("approvals")
    page.go("pins")
    expect(page.by("pins")).to_be_visible()
    page.assert_accessible("pins")
    page.go("audit")
    expect(page.by("records")).to_be_visible()
    page.assert_accessible("audit")
    page.page.get_by_role("button", name="Record").first.click()
    page.assert_accessible("record")
    page.page.keyboard.press("Escape")
    page.go("try", "writer", "get_node")
    page.field("nodeId").fill("root")
    page.by("run").click()
    expect(page.by("result")).to_have_attribute("data-status", "done")
    page.assert_accessible("try")
    page.by("open-help").click()
    page.assert_accessible("help")
    page.page.keyboard.press("Escape")


def test_the_sign_in_is_accessible(tab: Visit) -> None:
    page = tab(width=360)
    expect(page.by("sign-in")).to_be_visible()
    page.assert_accessible("sign-in")
    assert all("401" in line for line in page.noise)
    page.forgive_refusals()


def test_a_whole_visit_without_a_mouse(visit: Visit, writer: Hand) -> None:
    writer.plant(branch("keys", branch("keys-a"), branch("keys-b")))
    asked = writer.refused("remove_node", nodeId="keys-b")
    page = visit()
    press, type_text = page.page.keyboard.press, page.page.keyboard.type
    press("Tab")
    expect(page.page.get_by_role("link", name="Skip to the content")).to_be_focused()
    press("Enter")
    expect(page.page.get_by_role("main")).to_be_focused()
    press("3")
    expect(page.by("tree")).to_be_visible()
    expect(page.row("keys")).to_be_visible()
    press("/")
    type_text("@id = keys-a")
    press("Enter")
    expect(page.by("hit")).to_have_count(1)
    for _ in range(8):
        press("Tab")
        if page.by("hit").evaluate("hit => hit === document.activeElement"):
            break
    press("Enter")
    expect(page.by("node")).to_have_attribute("data-node", "keys-a")
    page.button("Edit name").focus()
    press("Enter")
    expect(page.field("Value of name")).to_be_focused()
    press("Control+A")
    type_text("Renamed")
    press("Enter")
    expect(page.value("name")).to_have_text("Renamed")
    expect(page.button("Edit name")).to_be_focused()
    page.go("approvals", asked["approvalId"])
    page.by("approve").focus()
    press("Enter")
    expect(page.by("decided")).to_be_visible()
    press("?")
    expect(page.by("help")).to_be_visible()
    press("Escape")
    expect(page.by("help")).to_have_count(0)
    press("6")
    expect(page.by("records")).to_be_visible()

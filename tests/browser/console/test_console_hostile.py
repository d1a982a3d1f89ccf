"""Names, payloads, tags and labels that want to be more than text are text."""

import pytest
from playwright.sync_api import expect

from browser.console.hand import Hand, branch
from browser.console.page import Visit
from browser.modules import EVIL

pytestmark = pytest.mark.browser
DEEP: dict[str, object] = {"bottom": True}
for _ in range(30):
    DEEP = {"next": DEEP}


def test_hostile_nodes_are_text_wherever_they_show(visit: Visit, writer: Hand) -> None:
    evil_id = "evil'\"/<b>\\#?&x"
    payload = {"name": EVIL, "link": "javascript:alert(1)", EVIL: EVIL, "deep": DEEP, "constructor": {"polluted": True}}
    bad = {"nodeId": evil_id, "payloadType": EVIL, "payload": payload, "tags": [EVIL]}
    writer.plant({**branch("pit"), "children": [bad]})
    writer.ok("update_payload_property", nodeId=evil_id, propertyName="__proto__", newValue={"polluted": True})
    page = visit("tree", "writer", evil_id)
    node = page.by("node")
    expect(node).to_contain_text(EVIL)
    expect(page.by("tags")).to_contain_text(EVIL)
    expect(page.by("properties")).to_contain_text("__proto__")
    expect(node.get_by_role("link")).to_have_count(0)
    query = page.by("dsl")
    query.fill('name contains "onerror" and @type contains "<img"')
    query.press("Enter")
    expect(page.by("hit")).to_have_count(1)
    expect(page.by("hit")).to_contain_text(EVIL)
    page.tab("Snapshots").click()
    page.field("Label of the new snapshot").fill(EVIL)
    page.button("Take").click()
    expect(page.by("snapshot").filter(has_text=EVIL)).to_be_visible()
    writer.ok("update_payload_property", nodeId=evil_id, propertyName="link", newValue=EVIL)
    page.field("From").select_option(label=EVIL)
    page.by("compare").click()
    expect(page.by("diff-entry")).to_have_count(1)
    expect(page.by("diff-entry")).to_contain_text(EVIL)
    page.tab("Changes").click()
    expect(page.by("changes")).to_contain_text("update_payload_property")
    page.go("audit")
    page.field("Tool").fill("update_payload_property")
    expect(page.by("records").locator("tbody tr").first).to_contain_text(evil_id)
    page.go("tree", "no such agent <img>")
    expect(page.page.get_by_role("main")).to_contain_text("no such agent")
    assert {"404" in line for line in page.noise} <= {True}
    page.forgive_refusals()
    page.go("agents", EVIL)
    expect(page.page.get_by_role("main")).to_contain_text("There is no agent")
    page.go("approvals", EVIL)
    expect(page.page.get_by_role("main")).to_contain_text("not in the inbox")

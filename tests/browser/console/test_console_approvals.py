"""The inbox: the exact call, one decision, and the very call that waited goes through once."""

import json

import httpx2
import pytest
from playwright.sync_api import Request, Route, expect

from browser.console.hand import Hand, branch
from browser.console.page import ConsolePage, Visit
from browser.modules import EVIL
from web.gateway import Gateway

pytestmark = pytest.mark.browser


def waiting(page: ConsolePage, approval_id: str) -> None:
    page.go("approvals", approval_id)
    expect(page.by("approval-detail")).to_have_attribute("data-state", "pending")


def test_a_waiting_call_arrives_by_itself_and_goes_through_once_approved(visit: Visit, writer: Hand) -> None:
    writer.plant(branch("doomed", branch("rake"), branch("spade")) | {"payload": {"name": "Old shed"}})
    page = visit("approvals")
    asked = writer.refused("remove_node", nodeId="doomed")
    assert asked["reason"] == "approval_required"
    entry = page.by("approval").filter(has_text="remove_node").filter(has_text="waiting")
    expect(entry.first).to_be_visible()
    expect(page.by("nav-approvals")).to_contain_text("waiting")
    waiting(page, asked["approvalId"])
    expect(page.by("approval-effect")).to_contain_text("removes 'Old shed' and 2 nodes below it")
    expect(page.by("approval-arguments")).to_contain_text('"nodeId": "doomed"')
    expect(page.by("approval-detail")).to_contain_text("approve: remove_*")
    expect(page.by("approval-detail")).to_contain_text("Remove a node and everything below it")
    page.by("reason").fill("go ahead")
    page.by("approve").click()
    expect(page.by("decided")).to_contain_text("approved")
    expect(page.by("decided")).to_contain_text("go ahead")
    assert writer.ok("remove_node", nodeId="doomed")["removedCount"] == 3
    expect(page.by("approval-detail")).to_have_attribute("data-state", "used")


def test_a_rejection_tells_the_agent_why(visit: Visit, writer: Hand) -> None:
    writer.plant(branch("kept"))
    asked = writer.refused("remove_node", nodeId="kept")
    page = visit()
    waiting(page, asked["approvalId"])
    page.by("reason").fill("we still need it")
    page.by("reject").click()
    expect(page.by("decided")).to_contain_text("rejected")
    again = writer.refused("remove_node", nodeId="kept")
    assert (again["reason"], "we still need it" in again["message"]) == ("approval_rejected", True)


def test_what_the_operator_asked_for_as_an_agent_says_so(visit: Visit, writer: Hand, gateway: Gateway) -> None:
    writer.plant(branch("asked-for"))
    operator = Hand(gateway, "writer", gateway.headers("operator")["Authorization"].removeprefix("Bearer "))
    asked = operator.refused("remove_node", nodeId="asked-for")
    operator.close()
    page = visit()
    waiting(page, asked["approvalId"])
    expect(page.by("approval-detail")).to_contain_text("The operator, acting as writer, asked to run remove_node")
    expect(page.by("approval").filter(has_text="operator as writer").first).to_be_visible()
    assert writer.refused("remove_node", nodeId="asked-for")["approvalId"] == asked["approvalId"]
    page.page.reload()
    expect(page.by("approval-detail")).to_contain_text("writer wants to run remove_node")
    page.by("reject").click()
    expect(page.by("decided")).to_be_visible()


def test_a_double_click_decides_once(visit: Visit, writer: Hand) -> None:
    writer.plant(branch("twice"))
    asked = writer.refused("remove_node", nodeId="twice")
    page = visit()
    waiting(page, asked["approvalId"])
    decisions: list[str] = []

    def count(request: Request) -> None:
        if request.method == "POST" and "/api/approvals/" in request.url:
            decisions.append(request.post_data or "")

    page.page.on("request", count)
    page.by("approve").dblclick()
    expect(page.by("decided")).to_be_visible()
    assert [json.loads(decision) for decision in decisions] == [{"approve": True, "reason": ""}]


def test_a_decision_made_elsewhere_stands(visit: Visit, writer: Hand, gateway: Gateway) -> None:
    writer.plant(branch("contested"))
    asked = writer.refused("remove_node", nodeId="contested")
    page = visit()
    waiting(page, asked["approvalId"])
    page.expected = ("409 (Conflict)",)
    address = f"{gateway.base}/api/approvals/{asked['approvalId']}"
    headers = gateway.headers("operator") | {"Content-Type": "application/json"}

    def overtaken(route: Route) -> None:
        if route.request.method == "POST":
            httpx2.post(address, json={"approve": False, "reason": "no"}, headers=headers).raise_for_status()
        route.continue_()

    page.page.route(address, overtaken)
    page.by("approve").click()
    expect(page.by("decided")).to_contain_text("rejected")
    assert writer.refused("remove_node", nodeId="contested")["reason"] == "approval_rejected"


def test_a_tool_of_a_server_is_shown_beside_its_pin_and_hostile_arguments_are_text(visit: Visit, writer: Hand) -> None:
    asked = writer.refused("up_data_table", note=EVIL, __proto__={"polluted": True})
    page = visit()
    waiting(page, asked["approvalId"])
    expect(page.by("approval-arguments")).to_contain_text("onerror")
    expect(page.by("approval-arguments")).to_contain_text("__proto__")
    expect(page.by("approval-pin")).to_contain_text("Unchanged")
    page.by("reject").click()
    expect(page.by("decided")).to_be_visible()


def test_an_http_tool_is_shown_with_the_request_that_it_will_send(visit: Visit, writer: Hand) -> None:
    asked = writer.refused("order", number="7/<b>", what=EVIL)
    page = visit()
    waiting(page, asked["approvalId"])
    sends = page.by("approval-sends")
    expect(sends).to_contain_text("PUT https://shop.example/orders/7%2F%3Cb%3E")
    expect(sends).to_contain_text("?key=[secret SHOP_KEY]")
    expect(page.by("approval-arguments")).to_contain_text("onerror")
    page.by("reject").click()
    expect(page.by("decided")).to_be_visible()
    writer.plant(branch("sent-nowhere"))
    waiting(page, writer.refused("remove_node", nodeId="sent-nowhere")["approvalId"])
    expect(sends).to_have_count(0)


def test_an_approval_may_stand_for_a_while_and_be_taken_back(visit: Visit, writer: Hand) -> None:
    writer.plant(branch("bed", branch("weed-1"), branch("weed-2"), branch("weed-3")))
    page = visit()
    waiting(page, writer.refused("remove_node", nodeId="weed-1")["approvalId"])
    page.button("Approve for 1 hour").click()
    expect(page.by("decided")).to_contain_text("whatever its arguments")
    expect(page.by("decided")).to_contain_text("60 min left")
    writer.ok("remove_node", nodeId="weed-1")
    writer.ok("remove_node", nodeId="weed-2")
    expect(page.by("decided")).to_contain_text("used 2 times so far")
    standing = page.page.get_by_role("region", name="Inbox").get_by_role("button", name="Revoke remove_node of writer")
    expect(standing).to_have_count(1)
    page.assert_accessible("a standing approval")
    standing.click()
    expect(page.by("approval-detail")).to_have_attribute("data-state", "revoked")
    expect(standing).to_have_count(0)
    assert writer.refused("remove_node", nodeId="weed-3")["reason"] == "approval_required"


def test_text_that_hides_is_shown_as_what_it_is_and_copied_as_it_was(visit: Visit, writer: Hand) -> None:
    name, shown = "invoice\u202efdp.exe", "invoice\\u202efdp.exe"
    writer.plant({**branch("trojan"), "payload": {"name": name, "note": "pass\u200bword"}})
    page = visit()
    waiting(page, writer.refused("remove_node", nodeId="trojan")["approvalId"])
    expect(page.by("approval-effect")).to_contain_text(shown)
    waiting(page, writer.refused("up_data_table", note=name)["approvalId"])
    expect(page.by("approval-arguments")).to_contain_text(shown)
    page.button("Copy the arguments").click()
    assert name in page.page.evaluate("navigator.clipboard.readText()")
    page.by("reason").fill("no \u2066such\u2069 thing")
    page.by("reject").click()
    expect(page.by("decided")).to_contain_text("no \\u2066such\\u2069 thing")
    page.show_node("writer", "trojan")
    expect(page.row("trojan")).to_contain_text(shown)
    expect(page.value("note")).to_have_text("pass\\u200bword")
    page.go("audit", "writer")
    expect(page.by("records")).to_be_visible()
    assert not set("\u202e\u200b\u2066\u2069") & set(page.page.locator("body").inner_text())


def test_on_whose_behalf_an_agent_asks_is_shown_to_who_decides_and_on_record(visit: Visit, writer: Hand) -> None:
    writer.plant(branch("for-another"))
    task = json.dumps(["remove_node", {"nodeId": "for-another"}])
    (one,) = writer.ok("spawn_agents", agents=[{"agent": "asker", "input": task}])["results"]
    page = visit()
    waiting(page, json.loads(one["output"])["error"]["approvalId"])
    expect(page.by("chain")).to_have_text("Asked through writer → asker")
    page.assert_accessible("an approval that was asked for through another agent")
    page.by("approve").click()
    expect(page.by("decided")).to_be_visible()
    page.go("audit")
    rows = page.by("records").locator("tbody tr")
    for filtered in (rows.filter(has_text="Approval: approved"), rows.filter(has_text="remove_node")):
        filtered.first.get_by_role("button").click()
        expect(page.by("record")).to_contain_text("writer → asker")
        expect(page.by("record")).to_contain_text("Works for call")
        page.page.keyboard.press("Escape")
        expect(page.by("record")).to_have_count(0)
    own = writer.refused("remove_node", nodeId="for-another")["approvalId"]
    page.go("approvals", own)
    expect(page.by("approval-detail")).to_be_visible()
    expect(page.by("chain")).to_have_count(0)

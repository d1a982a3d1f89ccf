"""What a person does with calls that wait, with figures, and with links: from where it is seen to where it leads."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from playwright.sync_api import expect

from browser.console.hand import Hand, branch
from browser.console.page import Visit
from mcp_text import told_on_wire
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


PRESSED_AS_THE_NEXT_COMES_UP = """
() => new Promise(done => {
  const press = () => document.dispatchEvent(new KeyboardEvent("keydown", { key: "a", cancelable: true }));
  const shown = () => document.querySelector("[data-testid=approval-arguments]")?.textContent;
  const first = shown();
  new MutationObserver((_, observer) => {
    if (shown() !== undefined && shown() !== first) {
      observer.disconnect();
      press();
      requestAnimationFrame(done);
    }
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
  press();
})
"""


def test_a_second_press_of_the_key_decides_nothing_that_came_up_meanwhile(visit: Visit, writer: Hand) -> None:
    for name in ("sedge", "rush"):
        writer.plant(branch(name))
        writer.refused("remove_node", nodeId=name)
    page = visit("approvals")
    decisions: list[str] = []
    page.page.on("request", lambda request: decisions.append(request.url) if request.method == "POST" else None)
    expect(page.by("approval-detail")).to_have_attribute("data-state", "pending")
    page.page.evaluate(PRESSED_AS_THE_NEXT_COMES_UP)
    assert len(decisions) == 1
    expect(page.by("approval-detail")).to_have_attribute("data-state", "pending")
    while len(decisions) == 1:  # the key counts again once one can have read what came up
        page.page.keyboard.press("a")
        page.page.wait_for_function("() => new Promise(requestAnimationFrame)")
    assert decisions[0] != decisions[1]


def test_a_quick_yes_is_the_answer_to_a_client_that_waits(visit: Visit, writer: Hand) -> None:
    writer.plant(branch("bindweed"))
    page = visit("approvals")
    with ThreadPoolExecutor() as beside:
        held = beside.submit(writer.patient, "remove_node", nodeId="bindweed")
        page.by("approval").filter(has_text="bindweed").click()  # others may wait too
        expect(page.by("approval-effect")).to_contain_text("bindweed")
        page.page.get_by_role("heading", name="Approvals").click()
        page.page.keyboard.press("a")
        *said, answer = held.result()
    assert "Waiting for a person to approve remove_node" in json.dumps(said)
    assert told_on_wire(answer["result"])["removedCount"] == 1
    expect(page.by("approval-detail")).to_have_attribute("data-state", "used")
    expect(page.by("approval-result")).to_contain_text("1 node changed: bindweed")
    page.assert_accessible("a call that was held open")


NOTICES = """
window.shown = [];
window.Notification = class {
  static permission = "default";
  static requestPermission() { return Promise.resolve((Notification.permission = "granted")); }
  constructor(title, options) { window.shown.push(this); Object.assign(this, { title, ...options }); }
  close() {}
};
"""
HIDDEN = """
Object.defineProperty(document, "hidden", { get: () => true });
document.dispatchEvent(new Event("visibilitychange"));
"""


def test_a_browser_that_may_tells_of_calls_that_wait_while_nobody_looks(
    visit: Visit, writer: Hand, gateway: Gateway
) -> None:
    writer.plant(branch("bramble"))
    page = visit("approvals")
    page.page.add_init_script(NOTICES)  # the browser's own cannot be seen from here
    page.page.reload()
    page.by("notify").click()
    expect(page.by("notices-on")).to_be_visible()
    page.expect_live()
    page.page.evaluate(HIDDEN)
    asked = writer.refused("remove_node", nodeId="bramble")
    page.page.wait_for_function("window.shown.length === 1")
    title, body = page.page.evaluate("[shown[0].title, shown[0].body]")
    assert (title, body) == ("writer wants to run remove_node", "It waits for your approval.")
    page.page.evaluate("window.shown[0].onclick()")
    expect(page.page).to_have_url(re.compile(re.escape(asked["approvalId"])))
    expect(page.by("approval-effect")).to_contain_text("bramble")


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


def test_the_chart_tells_how_many_how_long_and_whose_and_leads_to_the_calls(
    visit: Visit, writer: Hand, gateway: Gateway
) -> None:
    writer.ok("list_bookmarks")
    traffic = f"{gateway.base}/api/traffic?agent=asker"
    minutes = httpx2.get(traffic, headers=gateway.headers("operator"), timeout=30).json()["minutes"]
    made = sum(minute["calls"] for minute in minutes)  # other tests may have had it call
    page = visit()
    busy = page.page.locator('[data-testid=bar]:not([data-calls="0"])').last
    busy.hover()
    tip = page.by("chart-tip")
    expect(tip).to_contain_text(re.compile(r"\d call"))
    expect(tip).to_contain_text("on average, slowest")
    page.assert_accessible("a chart with its tip")
    page.field("Measure").select_option("latency")
    expect(page.by("latest-calls").locator("..").get_by_text("on average").first).to_be_visible()
    page.field("Agent").select_option("asker")
    expect(page.by("traffic")).to_have_attribute("aria-label", re.compile(rf"last hour: {made} call"))
    page.field("Agent").select_option("writer")
    page.field("Span").select_option("day")
    expect(page.by("traffic")).to_have_attribute("aria-label", re.compile(r"last day: [1-9]\d* call"))
    busy.click()
    expect(page.field("Agent")).to_have_value("writer")
    expect(page.by("records").locator("tbody tr").filter(has_text="list_bookmarks").first).to_be_visible()
    assert {"since", "until"} <= set(re.findall(r"(\w+)=", page.page.url))
    page.field("To").fill("2020-01-01T00:00")
    expect(page.by("audit")).to_contain_text("Nothing matches")
    page.page.reload()  # the address has it all
    expect(page.field("To")).to_have_value("2020-01-01T00:00")
    page.assert_accessible("a range")
    page.field("Time").select_option(label="Last day")
    expect(page.by("records")).to_contain_text("list_bookmarks")


def test_a_run_shows_its_sub_agents_what_they_said_and_what_it_took(visit: Visit, gateway: Gateway) -> None:
    below = json.dumps(["get_node", {"nodeId": "root"}])
    task = json.dumps(["spawn_agents", {"agents": [{"agent": "asker", "input": below}]}])
    with httpx2.Client(base_url=gateway.base, headers=gateway.headers("writer"), timeout=30) as http:
        assert http.post("/agents/writer/runs", json={"input": task}).status_code == 200
    page = visit("runs")
    page.by("run-row").filter(has_text="with its model").first.click()
    expect(page.by("run-task")).to_contain_text("spawn_agents")
    moments = page.by("timeline").locator("li")
    nested = moments.filter(has_text="asker").filter(has=page.page.get_by_role("link", name="get_node"))
    expect(nested.first).to_be_visible()
    spawning = moments.filter(has=page.page.get_by_role("link", name="spawn_agents")).first
    inner, outer = nested.first.locator(".mark").bounding_box(), spawning.locator(".mark").bounding_box()
    assert inner is not None
    assert outer is not None
    assert inner["x"] > outer["x"]  # who was sent stands further in
    expect(page.by("timeline").locator("[data-type=text]").first).to_contain_text("root")
    expect(page.by("run-usage")).to_contain_text("by sub-agents")
    expect(page.by("run-usage")).to_contain_text(re.compile(r"Tokens of obeying.*read, .*written"))
    page.assert_accessible("a run with sub-agents")
    nested.first.get_by_role("link", name="get_node").click()
    expect(page.by("call-facts")).to_contain_text("writer → asker")
    expect(page.by("call-facts")).to_contain_text("granted by tools: *")
    page.assert_accessible("a call of a sub-agent")


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
    expect(page.page.locator("main[data-view=agents]")).to_be_visible()
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

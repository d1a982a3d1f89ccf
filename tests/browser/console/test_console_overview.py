"""The project at a glance, and what each agent sees and does not."""

import json
import re
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import expect

from browser.console.hand import Hand
from browser.console.page import Visit
from browser.modules import EVIL
from ports import free_port
from waiting import wait_until
from warm.command import Process, python
from web.gateway import Gateway, serving

pytestmark = pytest.mark.browser
GUARDED = Path(__file__).parents[2] / "pool" / "mcp" / "guarded.py"


def test_the_overview_tells_what_is_up_what_is_down_and_why(visit: Visit) -> None:
    page = visit()
    sources = page.by("source")
    expect(sources).to_have_count(5)
    expect(sources.filter(has=page.page.get_by_text("up", exact=True))).to_have_attribute("data-up", "true")
    down = sources.filter(has=page.page.locator("strong", has_text="down"))
    expect(down).to_have_attribute("data-up", "false")
    expect(down.locator(".why")).not_to_be_empty()
    expect(page.by("figures")).to_contain_text("1 source down")
    expect(page.by("agents-card")).to_contain_text("get_noed")
    expect(page.by("agents-card")).to_contain_text("Did you mean")


def test_a_name_that_is_taken_already_is_shown_with_whose_it_is(visit: Visit) -> None:
    page = visit()
    refused = page.by("sources").locator("details")
    expect(refused).to_contain_text("1 tool not taken into the pool")
    refused.locator("summary").click()
    expect(refused).to_contain_text("'get_node' is a built-in tool and cannot be taken over")


def test_calls_and_refusals_are_counted_as_they_happen(visit: Visit, writer: Hand) -> None:
    page = visit()
    writer.call("update_payload_property", nodeId="no such node", propertyName="a", newValue=1)
    latest = page.by("latest-calls")
    expect(latest).to_contain_text("update_payload_property")
    expect(latest).to_contain_text("not_found")
    writer.ok("list_bookmarks")
    expect(latest.locator(".item").first).to_contain_text("list_bookmarks")
    expect(page.by("traffic")).to_have_attribute("aria-label", re.compile(r"[1-9]\d* call"))


def test_a_receipt_tells_why_for_every_tool(visit: Visit) -> None:
    page = visit("agents", "reader")
    expect(page.by("offered")).to_contain_text("tree://{nodeId} template of tree")
    verdicts = page.by("verdicts").locator("tbody tr")
    expect(page.by("agent-screen")).to_contain_text(EVIL)
    expect(verdicts.filter(has_text="get_node").first).to_contain_text("Granted by tools: get_*")
    expect(verdicts.filter(has_text="add_child").first).to_contain_text("Not listed in tools")
    expect(verdicts.filter(has_text="up_files_wipe")).to_contain_text("Hidden by the mask files.* of server up")
    page.by("verdict").filter(has_text="hidden").click()
    expect(verdicts).to_have_count(1)
    page.by("verdict").filter(has_text="hidden").click()
    page.field("Search tools").fill("up_ table")
    expect(verdicts).to_have_count(1)
    expect(verdicts).to_contain_text("blocked by role")
    expect(verdicts).to_contain_text('mcpServers.up.reads: ["data.table"]')
    page.by("agent").filter(has_text="writer").click()
    expect(page.by("verdicts").locator("tbody tr").filter(has_text="import_view")).to_contain_text(
        "Taken away by deny: import_view"
    )


def test_a_server_that_asks_for_a_login_is_logged_in_to_from_its_row(tab: Visit, tmp_path: Path) -> None:
    upstream = free_port()
    with Process(python(GUARDED, str(upstream))) as guarded:
        try:
            wait_until(lambda: _answers(upstream))
            sections = {"mcpServers": {"web": {"url": f"http://127.0.0.1:{upstream}/mcp", "oauth": {}}}}
            agents = {"a": {"role": "editor", "tools": ["*"]}}
            with serving(tmp_path, {**sections, "agents": agents, "state": "state"}) as gateway:
                page = tab(f"#{gateway.console.partition('#')[2]}", at=gateway)
                source = page.by("source")
                expect(source).to_contain_text("needs a login")
                page.by("log-in").click()
                page.page.wait_for_url(f"{gateway.base}/console*")
                expect(source).to_have_attribute("data-up", "true")
                expect(page.by("log-in")).to_have_count(0)
                assert "code=" not in page.page.url
                page.page.close()
                (asked,) = page.noise  # the one page that is not ours
                assert f"127.0.0.1:{upstream}/authorize" in asked
                page.noise.clear()
        finally:
            guarded.kill()


def _answers(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/control/seen").status_code == 200
    except httpx2.TransportError:
        return False


def test_a_clients_configuration_can_be_copied(visit: Visit, gateway: Gateway) -> None:
    page = visit("agents", "writer")
    expect(page.by("mcp-url")).to_have_text(gateway.agents["writer"])
    page.tab("Cursor").click()
    page.by("copy-config").click()
    expect(page.by("copy-config")).to_contain_text("Copied")
    copied = json.loads(page.page.evaluate("navigator.clipboard.readText()"))
    assert copied == {
        "mcpServers": {"garden-writer": {"url": gateway.agents["writer"], "headers": {"Authorization": "Bearer TOKEN"}}}
    }
    assert all(token not in page.page.content() for token in gateway.tokens.values())

"""Access is changed where it is seen: after a look at the lines, undoably; and a client gets its whole entry."""

from pathlib import Path

import pytest
import yaml
from playwright.sync_api import expect

from browser.console.hand import Hand
from browser.console.page import Visit
from toolgrove.store.state import hashed, token_id
from web.gateway import Gateway, serving

pytestmark = pytest.mark.browser


def test_a_tool_is_granted_from_its_row_after_a_look_at_the_change_and_taken_back(
    visit: Visit, gateway: Gateway
) -> None:
    before = gateway.file.read_text()
    page = visit("agents", "reader")
    row = page.page.locator('tr[data-tool="add_child"]')
    expect(row).to_have_attribute("data-standing", "denied")
    row.get_by_role("button", name="Ask first: add_child").click()
    dialog = page.by("access-dialog")
    expect(dialog.get_by_test_id("diff").locator(".added")).to_contain_text("add_child")
    expect(dialog).to_contain_text("Make its role editor")
    expect(dialog.get_by_test_id("other-effects")).to_contain_text("up_")
    assert gateway.file.read_text() == before
    dialog.get_by_test_id("write").click()
    expect(row).to_have_attribute("data-standing", "asks")
    agent = yaml.safe_load(gateway.file.read_text())["agents"]["reader"]
    assert (agent["role"], agent["approve"], agent["tools"][-1]) == ("editor", ["add_child"], "add_child")
    page.by("toast-action").click()
    expect(row).to_have_attribute("data-standing", "denied")
    assert gateway.file.read_text() == before


def test_a_file_that_changed_meanwhile_is_looked_at_again_before_it_is_written(visit: Visit, gateway: Gateway) -> None:
    before = gateway.file.read_text()
    page = visit("agents", "writer")
    page.page.locator('tr[data-tool="get_path"] [data-want=hide]').click()
    expect(page.by("write")).to_be_visible()
    gateway.file.write_text(before + "\n")
    page.by("write").click()
    expect(page.by("access-problem")).to_contain_text("has changed since you looked at it")
    page.by("write").click()
    expect(page.page.locator('tr[data-tool="get_path"]')).to_have_attribute("data-standing", "denied")
    page.by("toast-action").click()
    expect(page.page.locator('tr[data-tool="get_path"]')).to_have_attribute("data-standing", "granted")
    gateway.file.write_text(before)
    assert {"409" in line for line in page.noise} == {True}
    page.forgive_refusals()


def test_an_error_in_the_file_is_a_banner_with_its_line_until_it_is_mended(visit: Visit, gateway: Gateway) -> None:
    before = gateway.file.read_text()
    page = visit("agents", "reader")
    gateway.write(before.replace('"agents"', '"agentz"', 1))
    expect(page.by("file-banner")).to_contain_text("Line 1")
    expect(page.by("file-banner")).to_contain_text("did you mean 'agents'")
    page.assert_accessible("file banner")
    gateway.write(before)
    expect(page.by("file-banner")).to_have_count(0)


def test_a_new_token_stands_in_the_client_entry_and_works_until_it_is_revoked(visit: Visit, gateway: Gateway) -> None:
    page = visit("agents", "reader")
    entry = page.by("client-config")
    expect(entry).to_contain_text("Bearer TOKEN")
    page.by("new-token").click()
    expect(entry).to_contain_text("Bearer tg_")
    made = entry.inner_text().partition("Bearer ")[2].partition('"')[0]
    hand = Hand(gateway, "reader", token=made)
    assert "error" not in hand.call("get_node", nodeId="root")
    tokens = page.by("token")
    expect(tokens).to_have_count(2)
    page.go("agents", "writer")
    expect(page.by("client-config")).to_contain_text("Bearer TOKEN")
    page.go("agents", "reader")
    revoke = page.button(f"Revoke token {token_id(hashed(made))}")
    revoke.click()
    page.by("revoke-dialog").get_by_role("button", name="Keep it").click()
    assert hand.status("get_node", nodeId="root") == 200
    revoke.click()
    page.by("revoke-token").click()
    expect(tokens).to_have_count(1)
    assert hand.status("get_node", nodeId="root") == 401
    hand.close()


def test_access_is_changed_in_the_matrix_of_a_source_too(visit: Visit, gateway: Gateway) -> None:
    before = gateway.file.read_text()
    page = visit("sources", "up")
    page.tab("Who has what").click()
    cell = page.by("matrix").locator('[data-tool="up_data_table"] [data-agent="writer"]')
    expect(cell).to_have_attribute("data-standing", "asks")
    cell.get_by_role("button").click()
    expect(page.by("context-menu").get_by_role("menuitem")).to_have_text(["Grant", "Hide"])
    page.by("context-menu").get_by_text("Hide").click()
    expect(page.by("access-dialog")).to_contain_text("Hide up_data_table from writer?")
    page.by("write").click()
    expect(cell).to_have_attribute("data-standing", "denied")
    page.by("toast-action").click()
    expect(cell).to_have_attribute("data-standing", "asks")
    assert gateway.file.read_text() == before


@pytest.mark.services
def test_with_replicas_the_change_is_shown_to_be_copied_and_not_written(
    tab: Visit, tmp_path: Path, database: str
) -> None:
    agents = {"reader": {"tools": ["get_*"]}}
    with serving(tmp_path, {"workspace": {"store": database}, "agents": agents}) as gateway:
        before = gateway.file.read_text()
        page = tab(f"#{gateway.console.partition('#')[2]}", at=gateway)
        page.expect_live()
        page.go("agents", "reader")
        page.page.locator('tr[data-tool="search"] [data-want=grant]').click()
        dialog = page.by("access-dialog")
        expect(dialog.get_by_test_id("diff").locator(".added")).to_contain_text("search")
        expect(dialog.get_by_test_id("not-written")).to_contain_text("where you deploy from")
        expect(dialog.get_by_test_id("write")).to_have_count(0)
        dialog.get_by_role("button", name="Copy the change").click()
        assert "search" in page.page.evaluate("navigator.clipboard.readText()")
        assert gateway.file.read_text() == before
        page.page.close()

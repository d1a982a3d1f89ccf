"""The log, newest first: filtered, looked into, verified and taken along."""

import csv
import io
import json
from pathlib import Path

import pytest
from playwright.sync_api import Download, expect

from browser.console.hand import Hand, branch
from browser.console.page import ConsolePage, Visit
from e2e.edge import raw
from web.gateway import Gateway

pytestmark = pytest.mark.browser


def numbers(page: ConsolePage) -> list[int]:
    rows = page.by("records").locator("tbody tr")
    expect(rows.first).to_be_visible()
    return [int(number) for number in rows.evaluate_all("rows => rows.map(row => row.dataset.number)")]


def test_the_newest_come_first_page_by_page(visit: Visit, writer: Hand) -> None:
    for _ in range(100):
        writer.ok("list_bookmarks")
    page = visit("audit")
    shown = numbers(page)
    assert len(shown) == 50
    page.by("older").click()
    expect(page.by("records").locator("tbody tr")).to_have_count(100)
    shown = numbers(page)
    assert shown == sorted(set(shown), reverse=True)
    writer.ok("list_bookmarks")
    page.by("show-newer").click()
    expect(page.by("records").locator("tbody tr")).to_have_count(50)
    assert numbers(page)[0] > shown[0]


def test_records_are_filtered_and_looked_into(visit: Visit, writer: Hand) -> None:
    writer.refused("get_node", nodeId="=cmd()")
    page = visit("audit", "writer")
    page.field("Tool").fill("get_node")
    page.field("Outcome").select_option("failure")
    rows = page.by("records").locator("tbody tr")
    expect(rows.filter(has_text="=cmd()").first).to_be_visible()
    expect(rows.filter(has_text="success")).to_have_count(0)
    expect(rows.filter(has_text="reader")).to_have_count(0)
    rows.filter(has_text="=cmd()").first.locator("td").last.click()  # the whole row opens
    call = page.by("call")
    expect(call).to_contain_text("not_found")
    call.get_by_text("The record as it stands in the log").click()
    expect(call).to_contain_text("previous")
    page.page.go_back()
    expect(page.field("Outcome")).to_have_value("failure")  # what was chosen stands in the address
    page.field("Time").select_option(label="Last hour")
    expect(rows.filter(has_text="=cmd()").first).to_be_visible()
    page.field("Tool").fill("no_such_tool")
    expect(page.by("audit")).to_contain_text("Nothing matches")


def test_a_record_tells_what_was_given_what_came_back_and_who_approved_it(visit: Visit, writer: Hand) -> None:
    writer.plant(branch("on-record"))
    asked = writer.refused("remove_node", nodeId="on-record")
    page = visit("approvals", asked["approvalId"])
    page.by("approve").click()
    expect(page.by("decided")).to_be_visible()
    writer.ok("remove_node", nodeId="on-record")
    page.go("audit")
    rows = page.by("records").locator("tbody tr")
    decided = rows.filter(has_text="Approval: approved").first
    expect(decided).to_contain_text("operator about writer")
    decided.get_by_role("button").click()
    expect(page.by("record-details")).to_contain_text(asked["approvalId"])
    page.assert_accessible("the record of a decision")
    page.page.keyboard.press("Escape")
    page.field("Tool").fill("remove_node")
    page.field("Outcome").select_option("unknown")
    expect(page.by("audit")).to_contain_text("Nothing matches")
    page.field("Outcome").select_option("success")
    rows.first.get_by_role("button").click()
    expect(page.by("call-request")).to_contain_text("on-record")
    expect(page.by("call-response")).to_contain_text("removedCount")
    expect(page.by("call-changes")).to_contain_text("Removed on-record")
    expect(page.by("call-facts")).to_contain_text("used by operator")
    page.assert_accessible("the page of a call")


def test_a_stranger_whom_the_edge_refused_is_a_record_as_any_other(visit: Visit, gateway: Gateway) -> None:
    assert raw(gateway.address("reader"), "GET", "console", None, [("Host", "evil.example")])[0] == 421
    page = visit("audit")
    page.page.get_by_label("Kind").select_option("Refused request")
    expect(page.by("records").locator("tbody tr").filter(has_text="get_node")).to_have_count(0)
    row = page.by("records").locator("tbody tr").filter(has_text="Refused request: host rejected").first
    expect(row).to_contain_text("evil.example")
    expect(row).to_contain_text("refused")
    row.get_by_role("button").click()
    expect(page.by("record")).to_contain_text("its Host is none of ours")
    page.page.keyboard.press("Escape")
    page.by("verify").click()
    expect(page.by("verified")).to_contain_text("Not proved")  # a log in memory has no seals


def test_the_chain_is_verified_and_the_log_taken_along(visit: Visit, writer: Hand, tmp_path: Path) -> None:
    writer.refused("get_node", nodeId="=cmd()")
    page = visit("audit")
    page.by("verify").click()
    expect(page.by("verified")).to_contain_text("Not proved")  # a log in memory has no seals
    expect(page.by("findings")).to_contain_text("Not checked: the seals")
    page.field("Tool").fill("get_node")
    expect(page.by("records").locator("tbody tr").filter(has_text="list_bookmarks")).to_have_count(0)
    lines = saved(page, "jsonl", tmp_path).splitlines()
    records = [json.loads(line) for line in lines]
    assert {record["operation"] for record in records} == {"get_node"}
    assert len(records) > 1
    rows = list(csv.DictReader(io.StringIO(saved(page, "csv", tmp_path))))
    assert len(rows) >= len(records)
    assert "'=cmd()" in {row["targets"] for row in rows}


def saved(page: ConsolePage, format: str, folder: Path) -> str:
    with page.page.expect_download() as began:
        page.by(f"export-{format}").click()
    download: Download = began.value
    assert download.suggested_filename == f"audit.{format}"
    path = folder / download.suggested_filename
    download.save_as(path)
    return path.read_text("utf-8")

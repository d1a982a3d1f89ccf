"""Who gets in: the operator's token, from the address or by hand, kept in the tab and nowhere else."""

from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import expect

from browser.console.conftest import project
from browser.console.page import Visit
from web.gateway import Gateway, serving

pytestmark = pytest.mark.browser


def test_the_token_leaves_the_address_and_stays_in_the_tab(visit: Visit, gateway: Gateway) -> None:
    page = visit()
    token = gateway.console.partition("#token=")[2]
    assert token
    assert page.page.url == f"{gateway.base}/console#/"
    assert page.page.evaluate("JSON.stringify(localStorage)").find(token) == -1
    assert page.page.evaluate("document.cookie") == ""
    page.page.reload()
    page.expect_live()
    other = page.page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_test_id("sign-in")).to_be_visible()
    other.close()


def test_without_a_token_the_page_asks_for_one(tab: Visit, gateway: Gateway) -> None:
    page = tab()
    token = page.field("Operator's token")
    token.fill("tg_nonsense")
    page.button("Sign in").click()
    expect(page.page.get_by_role("alert")).to_contain_text("does not know this token")
    token.fill(gateway.tokens["writer"])
    page.button("Sign in").click()
    expect(page.page.get_by_role("alert")).to_contain_text("operator")
    token.fill(gateway.console.partition("#token=")[2])
    page.page.keyboard.press("Enter")
    page.expect_live()
    page.by("sign-out").click()
    expect(page.by("sign-in")).to_be_visible()
    page.page.reload()
    expect(page.by("sign-in")).to_be_visible()
    assert {"401" in line or "403" in line for line in page.noise} == {True}
    page.forgive_refusals()


def test_a_server_without_tokens_needs_none(tab: Visit, tmp_path: Path) -> None:
    with serving(
        tmp_path, {"project": "open", "agents": {"a": {"tools": ["*"]}}}, "--no-tokens-on-loopback"
    ) as open_one:
        page = tab(at=open_one)
        page.expect_live()
        expect(page.page.get_by_role("banner")).to_contain_text("open")
        expect(page.by("sign-out")).to_have_count(0)
        page.page.close()


def test_the_page_may_do_nothing_but_talk_to_its_server(gateway: Gateway) -> None:
    headers = httpx2.get(f"{gateway.base}/console").headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy
    assert "style-src 'sha256-" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"


def test_a_server_that_goes_away_is_told_and_found_again(tab: Visit, tmp_path: Path) -> None:
    with serving(tmp_path, project("http://127.0.0.1:9/mcp")) as first:
        page = tab(f"#{first.console.partition('#')[2]}", at=first)
        page.expect_live()
        port = str(first.port)
    expect(page.by("offline")).to_be_visible()
    expect(page.by("live-state")).to_contain_text("Reconnecting")
    with serving(tmp_path, project("http://127.0.0.1:9/mcp"), "--port", port):
        page.expect_live()
        expect(page.by("offline")).to_have_count(0)
        page.page.close()
    assert {"ERR_" in line for line in page.noise} == {True}
    page.forgive_refusals()

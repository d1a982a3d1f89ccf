"""Hostile data is shown and never obeyed; other pages cannot make the server run anything."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, expect

from browser.modules import EVIL, HUGE
from browser.screen import Visit
from e2e.modules import Journal

pytestmark = [pytest.mark.browser, pytest.mark.requirement("FR-EXPLORER-001")]


def test_hostile_descriptions_documents_and_schemas_are_text(visit: Visit) -> None:
    screen = visit(name=EVIL)
    expect(screen.page.get_by_role("banner")).to_contain_text(EVIL)
    expect(screen.by("tag").filter(has_text=EVIL)).to_have_count(1)
    screen.by("search").fill("<img")
    expect(screen.by("tool-link")).to_have_count(1)
    screen.open("hostile.markup")
    expect(screen.by("tool-detail")).to_contain_text(EVIL)
    expect(screen.field(EVIL)).to_have_value(EVIL)
    expect(screen.field("__proto__")).to_have_value("polluted")
    expect(screen.field("number")).to_have_value(str(HUGE))
    screen.field("slow").fill("a" * 40 + "!")
    screen.tab("Documentation").click()
    links = screen.by("documentation").get_by_role("link")
    assert links.evaluate_all("links => links.map(link => link.href)") == ["https://example.org/"]
    screen.tab("Schema").click()
    expect(screen.page.get_by_label("Input schema", exact=True).first).to_contain_text("onerror")
    absent = EVIL.split("</")[0]
    screen.page.goto(f"{screen.url}#/tool/{absent}")
    expect(screen.by("tool-error")).to_contain_text(f"Tool '{absent}' not found")
    assert {"404" in line for line in screen.noise} == {True}
    screen.forgive_refusals()


def test_hostile_results_are_text_digit_for_digit(visit: Visit) -> None:
    screen = visit()
    screen.open("hostile.markup")
    screen.start()
    insist = screen.button("Send anyway")
    expect(screen.by("result-value").or_(insist)).to_be_visible()
    if insist.is_visible():
        insist.click()
    screen.expect_status("done")
    expect(screen.by("result-value").locator("img")).to_have_count(1)
    expect(screen.page.locator("[style]")).to_have_count(0)
    expect(screen.by("result-value").get_by_role("link")).to_have_count(0)
    raw = screen.raw_result()
    assert f'"huge": {HUGE}' in raw
    assert '"__proto__"' in raw
    screen.by("open-history").click()
    expect(screen.by("history-entry")).to_have_count(1)


def test_hostile_questions_progress_and_failures_are_text(visit: Visit) -> None:
    screen = visit()
    screen.open("hostile.question")
    screen.run("asking")
    expect(screen.by("question")).to_contain_text(EVIL)
    expect(screen.field("word")).to_have_value(EVIL)
    screen.button("Answer").click()
    screen.expect_status("done")
    expect(screen.by("result-value")).to_contain_text("onerror")
    screen.open("hostile.failure")
    screen.field("word").fill("x")
    screen.run("failed")
    expect(screen.by("field-problem")).to_contain_text(EVIL)


class Elsewhere(ThreadingHTTPServer):
    """Another origin on this machine, which serves whatever page its `body` holds."""

    body = "<title>elsewhere</title>"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class Page(BaseHTTPRequestHandler):
    server: Elsewhere

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.server.body.encode())

    def log_message(self, *ignored: object) -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    with Elsewhere(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.wipe","arguments":{},"_meta":{"x":"'
FORM = """<form method=post action="{target}" enctype="{enctype}"><input name='{name}' value='{value}'></form>"""
SUBMIT = "setTimeout(() => document.forms[0].submit())"
POST = """([url, kind, body, mode]) =>
    fetch(url, {method: "POST", headers: {"Content-Type": kind}, body, mode}).then(r => r.type, error => error.name)"""


@pytest.mark.parametrize(("path", "before"), [("explorer/tools/files.wipe/call", '{"x":"'), ("mcp", CALL)])
@pytest.mark.requirement("FR-EXPLORER-004")
def test_a_form_on_another_page_runs_nothing(
    visit: Visit, chromium: Browser, elsewhere: Elsewhere, journal: Journal, path: str, before: str
) -> None:
    target = visit().address / path
    after = '"}}}' if path == "mcp" else '"}'
    page = chromium.new_page()
    for enctype in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        elsewhere.body = FORM.format(target=target, enctype=enctype, name=before, value=after)
        page.goto(elsewhere.url)
        with page.expect_navigation(url=target) as answer:
            page.evaluate(SUBMIT)
        assert answer.value.request.headers["content-type"].startswith(enctype)
        assert answer.value.status in (400, 403, 415), enctype
    page.close()
    assert journal.lines == []


@pytest.mark.requirement("FR-EXPLORER-004")
def test_a_script_on_another_page_runs_nothing_and_reads_nothing(
    visit: Visit, chromium: Browser, elsewhere: Elsewhere, journal: Journal
) -> None:
    address = visit().address
    page = chromium.new_page()
    page.goto(elsewhere.url)
    for url, body in ((address / "explorer/tools/files.wipe/call", "{}"), (address.mcp, CALL + '"}}}')):
        for kind in ("application/json", "text/plain"):
            assert page.evaluate(POST, [url, kind, body, "cors"]) == "TypeError"
            assert page.evaluate(POST, [url, kind, body, "no-cors"]) in ("opaque", "TypeError")
    assert page.evaluate("url => fetch(url).catch(error => error.name)", address / "explorer/tools") == "TypeError"
    page.close()
    assert journal.lines == []


def test_the_page_cannot_be_framed(visit: Visit, chromium: Browser, elsewhere: Elsewhere) -> None:
    url = visit().url
    elsewhere.body = f'<iframe src="{url}"></iframe>'
    page = chromium.new_page()
    page.goto(elsewhere.url)
    expect(page.frame_locator("iframe").get_by_test_id("search")).to_have_count(0)
    assert page.frames[1].url.startswith("chrome-error:")
    page.close()

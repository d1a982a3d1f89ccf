"""Hostile data is shown and never obeyed; other pages cannot make the server run anything."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, expect

from browser.modules import EVIL, HUGE
from browser.screen import Visit
from e2e.modules import Journal

pytestmark = [pytest.mark.browser, pytest.mark.requirement("FR-EXPLORER-001", "NFR-SEC-003")]


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
    screen.page.goto(f"{screen.url}#/tool/{EVIL}")
    expect(screen.by("tool-error")).to_contain_text("onerror")
    assert {"404" in line for line in screen.noise} == {True}
    screen.noise.clear()


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


@pytest.fixture
def elsewhere() -> Iterator[ThreadingHTTPServer]:
    """Another origin on this machine, which serves whatever page its `body` holds."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(self.server.body.encode())  # type: ignore[attr-defined]

        def log_message(self, *ignored: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files.wipe","arguments":{},"_meta":{"x":"'
FORM = """<form method=post action="{target}" enctype="{enctype}"><input name='{name}' value='{value}'></form>
<script>document.forms[0].submit()</script>"""


@pytest.mark.parametrize("enctype", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
@pytest.mark.parametrize(("path", "before"), [("explorer/tools/files.wipe/call", '{"x":"'), ("mcp", CALL)])
@pytest.mark.requirement("FR-EXPLORER-004")
def test_a_form_on_another_page_runs_nothing(
    visit: Visit, chromium: Browser, elsewhere: ThreadingHTTPServer, journal: Journal, enctype: str, path: str, before: str
) -> None:
    target = visit().address / path
    after = '"}}}' if path == "mcp" else '"}'
    elsewhere.body = FORM.format(target=target, enctype=enctype, name=before, value=after)  # type: ignore[attr-defined]
    page = chromium.new_page()
    with page.expect_response(target) as answer:
        page.goto(f"http://127.0.0.1:{elsewhere.server_port}/", wait_until="commit")
    assert answer.value.request.post_data is not None
    assert answer.value.status in (400, 403, 415)
    page.close()
    assert journal.lines == []


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
@pytest.mark.requirement("FR-EXPLORER-004")
def test_a_script_on_another_page_runs_nothing_and_reads_nothing(
    visit: Visit, chromium: Browser, elsewhere: ThreadingHTTPServer, journal: Journal, kind: str
) -> None:
    address = visit().address
    elsewhere.body = "<title>elsewhere</title>"  # type: ignore[attr-defined]
    page = chromium.new_page()
    page.goto(f"http://127.0.0.1:{elsewhere.server_port}/")
    call = """([url, kind, body, mode]) =>
        fetch(url, {method: "POST", headers: {"Content-Type": kind}, body, mode}).then(r => r.type, error => error.name)"""
    for url, body in ((address / "explorer/tools/files.wipe/call", "{}"), (address.mcp, CALL + '"}}}')):
        assert page.evaluate(call, [url, kind, body, "cors"]) == "TypeError"
        assert page.evaluate(call, [url, kind, body, "no-cors"]) in ("opaque", "TypeError")
    assert page.evaluate("url => fetch(url).catch(error => error.name)", address / "explorer/tools") == "TypeError"
    page.close()
    assert journal.lines == []


def test_the_page_cannot_be_framed(visit: Visit, chromium: Browser, elsewhere: ThreadingHTTPServer) -> None:
    url = visit().url
    elsewhere.body = f'<iframe src="{url}"></iframe>'  # type: ignore[attr-defined]
    page = chromium.new_page()
    page.goto(f"http://127.0.0.1:{elsewhere.server_port}/")
    expect(page.frame_locator("iframe").get_by_test_id("search")).to_have_count(0)
    assert page.frames[1].url.startswith("chrome-error:")
    page.close()

"""Running tools live: the page is an MCP client of the server it came from."""

import json
import shutil
import subprocess
import sys
from functools import partial

import pytest
from playwright.sync_api import expect

from browser.screen import Visit
from e2e.modules import Journal
from waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.requirement("FR-EXPLORER-004")]


def test_progress_is_shown_while_the_tool_runs(visit: Visit, journal: Journal) -> None:
    screen = visit()
    screen.open("reports.build")
    screen.start()
    bar = screen.page.get_by_role("progressbar")
    expect(screen.by("progress")).to_contain_text("Chapter 1 written")
    expect(bar).to_have_attribute("aria-valuenow", "25")
    journal.write("go on 1")
    expect(screen.by("progress")).to_contain_text("Chapter 2 written")
    expect(bar).to_have_attribute("aria-valuenow", "50")
    journal.write("go on 2")
    screen.expect_status("done")
    assert json.loads(screen.raw_result()) == {"pages": 24}


def test_a_stream_arrives_chunk_by_chunk_and_ends_as_one_result(visit: Visit, journal: Journal) -> None:
    screen = visit()
    screen.open("stories.tell")
    screen.start()
    expect(screen.by("progress")).to_contain_text('"last": "Once"')
    journal.write("after Once")
    expect(screen.by("progress")).to_contain_text('"last": "upon"')
    journal.write("after upon")
    screen.expect_status("done")
    assert json.loads(screen.raw_result()) == {"last": "upon", "lines": {"Once": True, "upon": True}}


def test_cancelling_reaches_the_modules_cancel_token(visit: Visit, journal: Journal) -> None:
    def is_said(line: str, times: int) -> bool:
        return journal.lines.count(line) == times

    screen = visit()
    screen.open("work.wait")
    for number, way in enumerate(("button", "key"), 1):
        screen.run("running")
        wait_until(partial(is_said, "waiting", number))
        assert not is_said("cancelled", number)
        if way == "button":
            screen.by("cancel").click()
        else:
            screen.page.keyboard.press("Escape")
        expect(screen.by("cancelled")).to_be_visible()
        wait_until(partial(is_said, "cancelled", number))


def test_leaving_the_page_cancels_what_it_started(visit: Visit, journal: Journal) -> None:
    screen = visit()
    screen.open("work.wait")
    screen.start()
    wait_until(lambda: "waiting" in journal)
    screen.page.reload()
    wait_until(lambda: "cancelled" in journal)


def test_questions_are_answered_in_the_middle_of_one_run(visit: Visit, journal: Journal) -> None:
    screen = visit()
    screen.open("travel.book")
    screen.field("to").fill("Lisbon")
    screen.run("asking")
    expect(screen.by("question")).to_contain_text("Which class to Lisbon?")
    screen.button("Answer").click()
    expect(screen.by("question").get_by_test_id("field-problem")).to_have_text("Required")
    screen.field("seat").select_option("first")
    screen.button("Answer").click()
    expect(screen.by("question")).to_contain_text("Really?")
    screen.button("Decline").click()
    screen.expect_status("done")
    assert json.loads(screen.raw_result()) == {"booked": True, "seat": "first", "confirmed": None}
    assert journal.lines == ["booking"]


def test_a_question_can_be_refused_in_three_ways(visit: Visit) -> None:
    screen = visit()
    screen.open("travel.book")
    screen.field("to").fill("Lisbon")
    for way in ("Decline", "Close", "Escape"):
        screen.run("asking")
        if way == "Escape":
            screen.page.keyboard.press(way)
        else:
            screen.button(way).click()
        screen.expect_status("done")
        assert json.loads(screen.raw_result()) == {"booked": False}


def test_a_dangerous_tool_runs_only_after_a_second_yes(visit: Visit, journal: Journal) -> None:
    screen = visit()
    screen.open("files.wipe")
    expect(screen.by("badges")).to_contain_text("estructive")
    screen.start()
    screen.button("Back").click()
    expect(screen.by("confirm")).to_have_count(0)
    screen.expect_status("idle")
    assert journal.lines == []
    screen.start()
    screen.button("Run it").click()
    screen.expect_status("done")
    assert journal.lines == ["wiped"]


@pytest.mark.requirement("FR-EXPLORER-001")
def test_over_the_old_transport_tools_run_without_progress_and_questions(visit: Visit) -> None:
    screen = visit(transport="sse")
    expect(screen.by("live-state")).to_have_count(0)
    screen.open("travel.book")
    screen.field("to").fill("Lisbon")
    screen.run()
    assert json.loads(screen.raw_result()) == {"booked": False}
    screen.open("math.divide")
    screen.field("dividend").fill("1")
    screen.field("divisor").fill("13")
    screen.run("failed")
    expect(screen.by("field-problem")).to_contain_text("thirteen is not lucky")
    screen.tab("Code").click()
    expect(screen.by("code")).to_contain_text("/explorer/tools/math.divide/call")
    assert len(screen.noise) == 1
    assert "status of 400" in screen.noise.pop()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_copied_code_makes_the_same_call(visit: Visit) -> None:
    screen = visit()
    screen.open("math.divide")
    screen.field("dividend").fill("1")
    screen.field("divisor").fill("4")
    screen.tab("Code").click()
    commands = {"cURL": ["sh", "-c"], "Python": [sys.executable, "-c"]}
    for language, command in commands.items():
        screen.tab(language).click()
        code = screen.copied("copy-code")
        done = subprocess.run([*command, code], capture_output=True, text=True, check=True, timeout=60)
        assert "0.25" in done.stdout, language
    screen.tab("MCP JSON-RPC").click()
    message = json.loads(screen.by("code").inner_text())
    assert (message["method"], message["params"]["arguments"]) == ("tools/call", {"dividend": 1, "divisor": 4})

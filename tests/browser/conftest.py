"""Chromium, the sample modules behind a real server, and pages that are checked for silence at the end of each test."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from apcore import Registry
from playwright.sync_api import Browser, expect, sync_playwright

from browser.modules import sample_registry
from browser.screen import Screen, Visit
from e2e.modules import Journal
from e2e.servers import serving

# The shell is the same engine without the browser's own windows, which cost more than the pages.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
MISSING = "Chromium is not installed, so nothing in tests/browser ran (apt install chromium, or CHROMIUM=/path)"
QUIET = ("gpu", "quic", "background-networking", "component-update", "sync")
FLAGS = ["--no-first-run", "--no-sandbox", *(f"--disable-{feature}" for feature in QUIET)]
PATIENCE = 15_000

expect.set_options(timeout=PATIENCE)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if CHROMIUM is None:
        terminalreporter.section(MISSING, sep="!", red=True)


# Not for the whole session: the sync API leaves a running event loop in this thread, where other tests need none.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None and os.environ.get("CI") == "true":
        pytest.fail(MISSING)
    if CHROMIUM is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture
def samples(journal: Journal) -> Registry:
    return sample_registry(journal)


@pytest.fixture
def visit(chromium: Browser, samples: Registry) -> Iterator[Visit]:
    """Opens the Explorer of a server of its own; options are those of `serve`."""
    screens: list[Screen] = []
    with ExitStack() as stack:

        def opened(
            hash: str = "",
            *,
            width: int = 1280,
            theme: Any = "light",
            explorer_prefix: str = "/explorer",
            allow_execute: bool = True,
            **options: Any,
        ) -> Screen:
            explorer: dict[str, Any] = {
                "explorer": True,
                "explorer_prefix": explorer_prefix,
                "allow_execute": allow_execute,
            }
            address = stack.enter_context(serving(samples, **explorer, **options))
            context = chromium.new_context(
                viewport={"width": width, "height": 800},
                color_scheme=theme,
                reduced_motion="reduce",
                permissions=["clipboard-read", "clipboard-write"],
            )
            stack.callback(context.close)
            context.set_default_timeout(PATIENCE)
            screen = Screen(context.new_page(), address, explorer_prefix)
            screens.append(screen)
            screen.load(hash)
            return screen

        yield opened
        for screen in screens:
            screen.assert_silent()

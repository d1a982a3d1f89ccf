"""Take the pictures of the documentation anew, from the sample project in Chromium: `python tools/pictures.py`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, expect, sync_playwright

FOLDER = Path(__file__).parents[1] / "docs" / "images"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
PORT = "18640"
WIDE = (1440, 864)
PHONE = (390, 844)

Shown = Callable[[Page], None]


def overview(page: Page) -> None:
    expect(page.get_by_test_id("latest-calls").locator("li").nth(3)).to_be_visible()


def access(page: Page) -> None:
    go(page, "agents/researcher")
    page.locator('tr[data-tool="shop_place_order"] [data-want=ask]').click()
    expect(page.get_by_test_id("write")).to_be_visible()


def matrix(page: Page) -> None:
    go(page, "sources/shop")
    page.get_by_role("tab", name="Who has what").click()
    expect(page.get_by_test_id("matrix")).to_be_visible()


def tree(page: Page) -> None:
    go(page, "tree/gardener/bed-glass")
    page.get_by_role("tab", name="History").click()
    expect(page.get_by_test_id("happening").nth(2)).to_be_visible()


def approval(page: Page) -> None:
    go(page, "approvals")
    expect(page.get_by_test_id("approve")).to_be_visible()


PICTURES: tuple[tuple[str, Shown, tuple[int, int], Literal["light", "dark"]], ...] = (
    ("console.png", overview, WIDE, "light"),
    ("console-dark.png", overview, WIDE, "dark"),
    ("console-access.png", access, WIDE, "light"),
    ("console-sources.png", matrix, (1440, 640), "light"),
    ("console-tree.png", tree, WIDE, "light"),
    ("console-approval.png", approval, WIDE, "light"),
    ("console-phone.png", approval, PHONE, "light"),
)


def go(page: Page, hash: str) -> None:
    page.evaluate("hash => { location.hash = hash }", f"#/{hash}")
    expect(page.locator(".loading")).to_have_count(0)


@contextmanager
def sample() -> Iterator[str]:
    """The address of a fresh sample project's console."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "toolgrove", "demo", "--port", PORT]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
            assert demo.stdout is not None
            try:
                said = ""
                while "Open the console" not in said:
                    said += demo.stdout.readline()
                yield re.findall(r"http\S+/console#\S+", said)[0]
            finally:
                demo.send_signal(signal.SIGINT)


def take(
    browser: Browser, address: str, name: str, shown: Shown, size: tuple[int, int], theme: Literal["light", "dark"]
) -> None:
    """Have one picture show one thing."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        device_scale_factor=2 if size == PHONE else 1.25,
        color_scheme=theme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(address)
    expect(page.get_by_test_id("figures")).to_be_visible()
    shown(page)
    page.screenshot(path=FOLDER / name)
    context.close()


def main() -> None:
    """Take all of them, or those that are named."""
    wanted = set(sys.argv[1:])
    expect.set_options(timeout=60_000)
    with sample() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, shown, size, theme in PICTURES:
            if not wanted or name in wanted:
                take(browser, address, name, shown, size, theme)
        browser.close()


if __name__ == "__main__":
    main()

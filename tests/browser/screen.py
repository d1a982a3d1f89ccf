"""A page as a person meets it, and all that it must never do."""

import re
from collections.abc import Callable
from urllib.parse import quote

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Dialog, Locator, Page, Request, expect

from e2e.servers import Address

AXE = Axe().axe_script
STANDARD = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]
OF_COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules whose verdict a theme can change: the themes differ in nothing but colours."""
_REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation",
    (event) => window.reportViolation(`${event.violatedDirective} ${event.blockedURI}`));
"""

Visit = Callable[..., "Screen"]


class Watched:
    """One page. Whatever should not happen on it is written to `noise`."""

    def __init__(self, page: Page, base: str) -> None:
        self.page, self._base = page, base
        self.noise: list[str] = []
        self.expected: tuple[str, ...] = ()
        """Parts of console lines that belong to what a test does; they may come late."""
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.noise.append(f"page error: {error}"))
        page.on("dialog", self._refuse)
        page.on("popup", lambda popup: self.noise.append(f"popup: {popup.url}"))
        page.on("request", self._watch)
        page.expose_function("reportViolation", lambda what: self.noise.append(f"CSP violation: {what}"))
        page.add_init_script(_REPORT_VIOLATIONS)

    def _hear(self, line: ConsoleMessage) -> None:
        if line.type in ("error", "warning") and not any(part in line.text for part in self.expected):
            self.noise.append(line.text)

    def _refuse(self, dialog: Dialog) -> None:
        self.noise.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _watch(self, request: Request) -> None:
        if not request.url.startswith((f"{self._base}/", "data:", f"blob:{self._base}/")):
            self.noise.append(f"request to another origin: {request.url}")

    def forgive_refusals(self) -> None:
        """Forget what the browser said of refused requests, also what it has yet to say."""
        self.expected = ("Failed to load resource",)
        self.noise.clear()

    def by(self, test_id: str) -> Locator:
        return self.page.get_by_test_id(test_id)

    def field(self, label: str) -> Locator:
        return self.page.get_by_label(label, exact=True)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def tab(self, name: str) -> Locator:
        return self.page.get_by_role("tab", name=re.compile(f"^{name}"))

    def copied(self, test_id: str) -> str:
        """What a button puts on the clipboard, which it does in its own time."""
        self.page.evaluate("navigator.clipboard.writeText('')")
        self.by(test_id).click()
        return str(self.page.wait_for_function("() => navigator.clipboard.readText()").json_value())

    def assert_silent(self) -> None:
        if not self.page.is_closed():
            assert self.page.evaluate("window.__pwned") is None, "hostile text ran"
            assert self.page.evaluate("({}).polluted") is None, "hostile data changed every object"
        assert self.noise == [], self.noise

    def assert_accessible(self, state: str) -> None:
        """No WCAG A or AA finding, in light and in dark, and nothing wider than the screen."""
        findings = [f"{state}: {finding}" for finding in self._findings("tag", STANDARD)]
        self.page.emulate_media(color_scheme="dark")
        findings += [f"{state}, dark: {finding}" for finding in self._findings("rule", OF_COLOURS)]
        self.page.emulate_media(color_scheme="light")
        assert findings == [], findings
        overflow = "document.documentElement.scrollWidth - innerWidth"
        assert self.page.evaluate(overflow) <= 0, f"{state}: wider than the screen"

    def _findings(self, kind: str, rules: list[str]) -> list[str]:
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE)
        options = {"runOnly": {"type": kind, "values": rules}, "resultTypes": ["violations"]}
        found = self.page.evaluate("options => axe.run(document, options)", options)["violations"]
        return [f"{each['id']} {[node['target'] for node in each['nodes']]}" for each in found]


class Screen(Watched):
    """The Explorer."""

    def __init__(self, page: Page, address: Address, prefix: str) -> None:
        super().__init__(page, address.base)
        self.address, self.url = address, address / f"{prefix.strip('/')}/"

    def load(self, hash: str = "") -> None:
        self.page.goto(self.url + hash)
        expect(self.by("tool-count").or_(self.by("tool-detail")).first).to_be_visible()

    def open(self, tool: str) -> None:
        self.page.evaluate("hash => { location.hash = hash }", f"#/tool/{quote(tool, safe='')}")
        expect(self.by("tool-detail").and_(self.field(tool))).to_be_visible()

    def start(self) -> None:
        self.by("run").click()

    def run(self, status: str = "done") -> None:
        self.start()
        self.expect_status(status)

    def expect_status(self, status: str) -> None:
        expect(self.by("result")).to_have_attribute("data-status", status)

    def raw_result(self) -> str:
        """The result as JSON text, which keeps every digit."""
        self.tab("Raw JSON").click()
        return self.by("result-value").inner_text()

"""The console as a person meets it."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from playwright.sync_api import Locator, Page, expect

from browser.screen import Watched

Visit = Callable[..., "ConsolePage"]


class ConsolePage(Watched):
    """One tab with the console in it."""

    def __init__(self, page: Page, base: str) -> None:
        super().__init__(page, base)
        self.url = f"{base}/console"

    def load(self, fragment: str = "") -> None:
        self.page.goto(self.url + fragment)

    def go(self, *way: str) -> None:
        """To a view, and to what it shows."""
        self.page.evaluate("hash => { location.hash = hash }", "#/" + "/".join(quote(part, safe="") for part in way))
        view = self.page.locator("main").and_(self.page.locator(f"[data-view={way[0] if way else 'overview'}]"))
        expect(view).to_be_visible()

    def expect_live(self) -> None:
        expect(self.by("live-state")).to_have_class("live live")

    def row(self, node_id: str) -> Locator:
        """A node in the tree."""
        return self.page.locator(f'[data-testid=tree-row][data-node="{node_id}"]')

    def open_node(self, *way: str) -> None:
        """Open nodes of the tree, one below the other."""
        for node_id in way:
            self.row(node_id).get_by_test_id("twist").click()
            expect(self.row(node_id)).to_have_attribute("aria-expanded", "true")

    def show_node(self, agent: str, node_id: str) -> None:
        self.go("tree", agent, node_id)
        self.expect_node(node_id)

    def expect_node(self, node_id: str) -> None:
        """The node is the chosen one, and all about it has been read."""
        expect(self.by("node")).to_have_attribute("data-node", node_id)
        expect(self.row(node_id)).to_have_attribute("aria-selected", "true")

    def value(self, name: str) -> Locator:
        """A property of the chosen node."""
        return self.page.locator(f'[data-testid=property-value][data-property="{name}"]')

    def edit(self, name: str, text: str) -> None:
        self.button(f"Edit {name}").click()
        self.field(f"Value of {name}").fill(text)
        self.button("Save").click()

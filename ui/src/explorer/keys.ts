import type { Explorer } from "./model";

export const SHORTCUTS: [string[], string][] = [
  [["/"], "Search tools"],
  [["↑", "↓"], "Move through the list"],
  [["Enter"], "Open the tool"],
  [["Ctrl", "Enter"], "Run the open tool (⌘ on a Mac)"],
  [["Esc"], "Cancel the running call, close a dialog or clear the search"],
  [["?"], "Show this help"],
];

/** Keys that work anywhere on the page. */
export function listenForKeys(explorer: Explorer): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const { tool } = explorer.route.peek();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      document.querySelector<HTMLButtonElement>("[data-testid=run]")?.click();
      event.preventDefault();
    } else if (event.key === "Escape" && tool !== null && explorer.runner.isActive(tool)) {
      explorer.runner.cancel(tool);
      event.preventDefault();
    } else if (
      explorer.settings.singleKeys.peek() &&
      !event.ctrlKey &&
      !event.metaKey &&
      !event.altKey &&
      !isTyping(event.target)
    ) {
      single(explorer, event);
    }
  });
}

function single(explorer: Explorer, event: KeyboardEvent): void {
  if (event.key === "/") {
    const search = document.querySelector<HTMLInputElement>("#search");
    // On a phone the list is another screen.
    if (search?.offsetParent === null) location.hash = "#/";
    requestAnimationFrame(() => search?.select());
    event.preventDefault();
  } else if (event.key === "?") {
    explorer.panel.value = { type: "help" };
    event.preventDefault();
  }
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.matches("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]")
  );
}

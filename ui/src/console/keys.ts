import type { Console } from "./model";
import { hashOf, viewsOf } from "./route";

export const SHORTCUTS: [string[], string][] = [
  [["1", "…", "7"], "Go to a view"],
  [["Ctrl", "K"], "Find anything: views, agents, tools, sources, nodes, calls (⌘ on a Mac)"],
  [["/"], "Search in the view"],
  [["↑", "↓"], "Move through a list or the tree"],
  [["←", "→"], "Close or open a node"],
  [["Enter"], "Show what is chosen"],
  [["Shift", "↑", "↓"], "Choose several nodes (or Ctrl and Space)"],
  [["Alt", "↑", "↓"], "Move a node up or down; with ← and → out or in"],
  [["F2"], "Rename a node"],
  [["Del"], "Remove what is chosen"],
  [["Ctrl", "Z"], "Undo in the tree; with Shift: redo"],
  [["Shift", "F10"], "Open the menu of a node"],
  [["Ctrl", "Enter"], "Run the open tool (⌘ on a Mac)"],
  [["Esc"], "Cancel the running call, close a dialog or clear the search"],
  [["?"], "Show this help"],
];

/** Keys that work anywhere on the page. */
export function listenForKeys(console: Console): void {
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      if (!document.querySelector("dialog[open]")) console.finding.value = true;
      return;
    }
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      document.querySelector<HTMLButtonElement>("[data-testid=run]")?.click();
    } else if (event.key === "Escape") {
      document.querySelector<HTMLButtonElement>("[data-testid=cancel]")?.click();
    } else if (
      console.settings.singleKeys.peek() &&
      !event.ctrlKey &&
      !event.metaKey &&
      !event.altKey &&
      !isTyping(event.target)
    ) {
      single(console, event);
    }
  });
}

function single(console: Console, event: KeyboardEvent): void {
  const view = viewsOf(console.project.peek())[Number(event.key) - 1];
  if (event.key === "/") document.querySelector<HTMLInputElement>("main [data-search]")?.select();
  else if (event.key === "?") console.helping.value = true;
  else if (/^[1-9]$/.test(event.key) && view) console.go(hashOf(view));
  else return;
  event.preventDefault();
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.matches("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]")
  );
}

import { Icon, type IconName } from "../components/Icon";
import { plural } from "../lib/format";
import { waits } from "./facts";
import { useConsole } from "./model";
import { hashOf, type View, viewsOf } from "./route";

export const TITLES: Record<View, string> = {
  overview: "Overview",
  agents: "Agents",
  tree: "Tree",
  approvals: "Approvals",
  sources: "Sources",
  audit: "Audit",
  try: "Playground",
  calls: "Call",
  runs: "Runs",
  docs: "Documentation",
  unknown: "Not found",
};

export const ICONS: Record<View, IconName> = {
  overview: "overview",
  agents: "agents",
  tree: "tree",
  approvals: "inbox",
  sources: "plug",
  audit: "log",
  try: "flask",
  calls: "log",
  runs: "play",
  docs: "book",
  unknown: "search",
};

export function Nav() {
  const console = useConsole();
  const waiting: Partial<Record<View, number>> = {
    approvals:
      console.approvals.value?.filter((one) => one.state === "pending").length ?? console.project.value?.pending ?? 0,
    sources: console.pins.value?.filter(waits).length ?? 0,
  };
  return (
    <nav class="nav" aria-label="Views">
      <button
        type="button"
        class="nav-link find-anything"
        title="Find anything (Ctrl+K)"
        data-testid="open-palette"
        onClick={() => (console.finding.value = true)}
      >
        <Icon name="search" />
        <span class="nav-name">Find</span>
        <kbd class="nav-keys" aria-hidden="true">
          Ctrl K
        </kbd>
      </button>
      <ul>
        {viewsOf(console.project.value).map((view) => (
          <li key={view}>
            <a
              class="nav-link"
              href={hashOf(view)}
              aria-current={isIn(console.route.value.view, view) ? "page" : undefined}
              data-testid={`nav-${view}`}
            >
              <Icon name={ICONS[view]} />
              <span class="nav-name">
                {view === "try" ? (
                  <>
                    Play<span class="nav-rest">ground</span>
                  </>
                ) : (
                  TITLES[view]
                )}
              </span>
              {!!waiting[view] && (
                <span class="count" title={`${plural(waiting[view], "thing")} to decide`}>
                  {waiting[view]}
                  <span class="visually-hidden"> waiting</span>
                </span>
              )}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** Calls and runs are looked at from the audit log. */
function isIn(shown: View, view: View): boolean {
  return shown === view || (view === "audit" && (shown === "calls" || shown === "runs"));
}

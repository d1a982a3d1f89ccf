/** Where one is: `#/tree/editor/kitchen` is a view and the names of what it shows. */
import { segment } from "../lib/link";

export const VIEWS = ["overview", "agents", "tree", "approvals", "sources", "audit", "try"] as const;
/** Pages that one gets to from others; `unknown` is an address that leads nowhere. */
const PAGES = [...VIEWS, "calls", "runs", "docs", "unknown"] as const;
export type View = (typeof PAGES)[number];

/** The views of a project: one without a tree has no page for it. */
export function viewsOf(project: { tree: boolean } | null): readonly View[] {
  return project?.tree === false ? VIEWS.filter((view) => view !== "tree") : VIEWS;
}

/** Views by the names that they had before: addresses are kept and sent around. */
const OLDER: Record<string, View> = { pins: "sources" };

export interface Route {
  view: View;
  /** The agent, approval or other thing that the view shows; null for its own choice. */
  subject: string | null;
  /** The node or tool within that. */
  detail: string | null;
  /** What a list is narrowed to. */
  query: Readonly<Record<string, string>>;
}

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view, subject, detail] = path.split("/").map(decoded);
  const named = OLDER[view ?? ""] ?? view;
  const known = !named ? "overview" : (PAGES.find((name) => name === named) ?? "unknown");
  return {
    view: known,
    subject: subject || null,
    detail: detail || null,
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

export function hashOf(view: View, subject: string | null = null, detail: string | null = null): string {
  if (view === "overview") return "#/";
  const parts = [view, ...(subject === null ? [] : [subject, ...(detail === null ? [] : [detail])])];
  return `#/${parts.map(segment).join("/")}`;
}

/** The audit log, narrowed down. */
export function auditHash(filter: Readonly<Record<string, string>>): string {
  const given = Object.entries(filter).filter(([, value]) => value !== "");
  return given.length === 0 ? "#/audit" : `#/audit?${new URLSearchParams(given)}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Where one is: `#/tree/editor/kitchen` is a view and the names of what it shows. */
import { segment } from "../lib/link";

export const VIEWS = ["overview", "agents", "tree", "approvals", "sources", "audit", "try"] as const;
export type View = (typeof VIEWS)[number];

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
}

export function parseRoute(hash: string): Route {
  const [view, subject, detail] = hash.replace(/^#\/?/, "").split("/").map(decoded);
  const named = OLDER[view ?? ""] ?? view;
  const known = VIEWS.find((name) => name === named);
  return { view: known ?? "overview", subject: (known && subject) || null, detail: (known && detail) || null };
}

export function hashOf(view: View, subject: string | null = null, detail: string | null = null): string {
  if (view === "overview") return "#/";
  const parts = [view, ...(subject === null ? [] : [subject, ...(detail === null ? [] : [detail])])];
  return `#/${parts.map(segment).join("/")}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

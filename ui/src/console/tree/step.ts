/** What undo or redo would do, in words. */
import { get, isObject, type JsonObject } from "../../lib/json";
import { list, objectOr, text, texts } from "../facts";
import { nameOf } from "./node";

export interface Step {
  /** “rename Notes” */
  what: string;
  /** Who made the change; null if nobody can tell. */
  by: string | null;
  byYou: boolean;
  /** Milliseconds since 1970; null if unknown. */
  at: number | null;
  /** The version that the change led to: undo and redo are asked for this change and no other. */
  ofVersion: string;
}

const VERBS: Record<string, string> = {
  add_child: "add",
  remove_node: "remove",
  move_node: "move",
  move_before: "move",
  move_after: "move",
  tag_node: "tag",
  sort_children: "sort",
  copy_subtree: "copy",
  clone_node: "copy",
  snapshot_restore: "restore a snapshot:",
};

/** What a step does where its tool says only that something was taken back or brought back. */
const TAKEN_BACK = new Set(["undo", "redo"]);

/** What the change was called: a verb, the first node by its name, and how many more. */
export function describe(move: "undo" | "redo", answer: JsonObject, name: (id: string) => string): string {
  const tool = text(answer, "tool");
  const changes = objectOr(get(answer, "wouldChange"));
  const [first = ""] = texts(answer, "nodeIds");
  const carried = ["removed", "added"].flatMap((kind) => list(changes, kind)).map((one) => objectOr(one));
  const known = carried.find((one) => text(one, "nodeId") === first);
  const called = known ? nameOf({ id: first, payload: objectOr(get(known, "payload")) }) : name(first);
  const renamed = list(changes, "changed").some((one) =>
    isObject(get(objectOr(get(objectOr(one), "properties")), "name")),
  );
  const verb = TAKEN_BACK.has(tool)
    ? verbOf(move, changes, renamed)
    : (VERBS[tool] ?? (renamed ? "rename" : tool.startsWith("update_") ? "change" : `${tool}:`));
  const count = get(answer, "nodeCount");
  const more = typeof count === "number" && count > 1 ? ` and ${count - 1} more` : "";
  return `${verb} ${called}${more}`;
}

/** The verb by what would change: an undo that removes takes an addition back. */
function verbOf(move: "undo" | "redo", changes: JsonObject, renamed: boolean): string {
  const has = (kind: string): boolean => list(changes, kind).length > 0;
  if (has("added")) return move === "undo" ? "remove" : "add";
  if (has("removed")) return move === "undo" ? "add" : "remove";
  if (has("moved") || has("reordered")) return "move";
  return renamed ? "rename" : "change";
}

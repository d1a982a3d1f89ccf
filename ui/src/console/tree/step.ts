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

/** The nodes that a dry run of it names and that carry no name of their own. */
export function unnamed(answer: JsonObject): string[] {
  return texts(answer, "nodeIds").slice(0, 3);
}

/** What the change was called: a verb, the first node by its name, and how many more. */
export function describe(answer: JsonObject, name: (id: string) => string): string {
  const tool = text(answer, "tool");
  const changes = objectOr(get(answer, "wouldChange"));
  const [first = ""] = texts(answer, "nodeIds");
  const carried = ["removed", "added"].flatMap((kind) => list(changes, kind)).map((one) => objectOr(one));
  const known = carried.find((one) => text(one, "nodeId") === first);
  const called = known ? nameOf({ id: first, payload: objectOr(get(known, "payload")) }) : name(first);
  const renamed = list(changes, "changed").some((one) =>
    isObject(get(objectOr(get(objectOr(one), "properties")), "name")),
  );
  const verb = VERBS[tool] ?? (renamed ? "rename" : tool.startsWith("update_") ? "change" : `${tool}:`);
  const count = get(answer, "nodeCount");
  const more = typeof count === "number" && count > 1 ? ` and ${count - 1} more` : "";
  return `${verb} ${called}${more}`;
}

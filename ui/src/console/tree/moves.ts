/** Ways to move nodes: among siblings, in and out, and to where they were dropped. */
import { plural } from "../../lib/format";
import { samePlace, type TreeModel } from "./model";
import { type Item, nameOf, ROOT } from "./node";

export type Zone = "before" | "inside" | "after";

/** What the names of some nodes are together. */
export function namesOf(model: TreeModel, ids: readonly string[]): string {
  const [first = ""] = ids;
  return ids.length === 1 ? model.forest.name(first) : plural(ids.length, "node");
}

/** Whether a node is another, or below it, as far as the tree is loaded. */
export function isWithin(model: TreeModel, id: string, top: string): boolean {
  for (let at: string | null = id; at !== null; at = model.forest.get(at)?.parentId ?? null)
    if (at === top) return true;
  return false;
}

/** The chosen nodes without those that go along with one above them. */
export function topmost(model: TreeModel, ids: readonly string[]): string[] {
  return ids.filter((id) => id !== ROOT && !ids.some((other) => other !== id && isWithin(model, id, other)));
}

export function canDrop(model: TreeModel, ids: readonly string[], target: string, zone: Zone): boolean {
  if (zone !== "inside" && target === ROOT) return false;
  return ids.length > 0 && !ids.some((id) => isWithin(model, target, id));
}

/** Moves nodes into another, or before or after it; one call, one undo. */
export async function moveTo(model: TreeModel, ids: readonly string[], target: string, zone: Zone): Promise<void> {
  const items = ids.flatMap((id) => model.forest.get(id) ?? []);
  const [item] = items;
  if (!item || !canDrop(model, ids, target, zone)) return;
  const title = `Move ${namesOf(model, ids)}`;
  if (items.length > 1) {
    const place = zone === "inside" ? { parentId: target } : { [zone]: target };
    await model.act({ tool: "apply_changes", args: { changes: [{ op: "move", at: ids, ...place }] }, title });
    return;
  }
  const basis = { item, still: samePlace(item) };
  if (zone === "inside")
    await model.act({ tool: "move_node", args: { nodeId: item.id, newParentId: target }, title, basis });
  else
    await model.act({
      tool: zone === "before" ? "move_before" : "move_after",
      args: { nodeId: item.id, siblingId: target },
      title,
      basis,
    });
}

export type Direction = "up" | "down" | "out" | "in";

/** One place up or down among siblings, out to stand after the parent, or in to the sibling above. */
export async function nudge(model: TreeModel, item: Item, direction: Direction): Promise<void> {
  if (item.parentId === null) return;
  const siblings = model.forest.get(item.parentId)?.children ?? [];
  const at = siblings.indexOf(item.id);
  const [above, below] = [siblings[at - 1], siblings[at + 1]];
  if (direction === "up" && above !== undefined) await moveTo(model, [item.id], above, "before");
  if (direction === "down" && below !== undefined) await moveTo(model, [item.id], below, "after");
  if (direction === "out" && item.parentId !== ROOT) await moveTo(model, [item.id], item.parentId, "after");
  if (direction === "in" && above !== undefined) await moveTo(model, [item.id], above, "inside");
}

/** The property that a node is named by, and what it says. */
export function nameKey(item: Item): string {
  const name = nameOf(item);
  return ["name", "Name", "title", "label"].find((key) => item.payload[key] === name) ?? "name";
}

export async function rename(model: TreeModel, item: Item, name: string): Promise<void> {
  const key = nameKey(item);
  if (name.trim() === "" || item.payload[key] === name) return;
  await model.act({
    tool: "update_payload_property",
    args: { nodeId: item.id, propertyName: key, newValue: name },
    title: `Rename ${nameOf(item)}`,
    basis: { item, still: (now) => now.payload[key] === item.payload[key] },
  });
}

/** Removes nodes with everything below them; one call, one undo. */
export async function removeAll(model: TreeModel, ids: readonly string[]): Promise<boolean> {
  const answer = await model.act({
    tool: "apply_changes",
    args: { changes: [{ op: "remove", at: ids }] },
    title: `Remove ${namesOf(model, ids)}`,
  });
  return answer !== null;
}

import { expect, test, vi } from "vitest";
import type { TreeNews } from "../src/console/news";
import { offersAt } from "../src/console/tree/completion";
import { patchOf } from "../src/console/tree/dialogs";
import { samePlace, sameProperty, TreeModel } from "../src/console/tree/model";
import { canDrop, topmost } from "../src/console/tree/moves";
import type { Item } from "../src/console/tree/node";
import { ApiError } from "../src/lib/http";
import { type JsonObject, toJson } from "../src/lib/json";
import { SmallWorkspace } from "./small-workspace";

const NONE = new Set(["export_subtree", "list_payload_types"]);

async function opened(fill: (workspace: SmallWorkspace) => void) {
  const workspace = new SmallWorkspace();
  fill(workspace);
  let key = 0;
  const said: string[] = [];
  const model = new TreeModel(
    workspace,
    (tool) => !NONE.has(tool),
    () => `key-${++key}`,
    (message) => said.push(message),
  );
  await model.enter();
  return { workspace, model, said };
}

const shown = (model: TreeModel): string[] =>
  model.forest.rows.value.map((row) => `${" ".repeat(row.depth)}${row.more === null ? row.id : "…"}`);
const changed = (agent: string, tool: string, ...nodeIds: string[]): TreeNews => ({
  type: "tree",
  callId: "c1",
  agent,
  byOperator: false,
  tool,
  nodeIds,
  at: 0,
});
const item = (model: TreeModel, id: string): Item => model.forest.get(id) as Item;

function house(workspace: SmallWorkspace): void {
  workspace.add("root", { name: "House" }, "house");
  workspace.add("house", { name: "Kitchen", size: 12 }, "kitchen");
  workspace.add("house", { name: "Bath" }, "bath");
  workspace.add("root", { name: "Shed" }, "shed");
}

/** Lets the throttled readings happen. */
async function settled(): Promise<void> {
  await vi.advanceTimersByTimeAsync(2_000);
}

test("only what is opened is read", async () => {
  const { workspace, model } = await opened(house);
  expect(shown(model)).toEqual(["root", " house", " shed"]);
  expect(workspace.calls.sort()).toEqual(["get_node", "list_children"]);
  await model.forest.open("house");
  expect(shown(model)).toEqual(["root", " house", "  kitchen", "  bath", " shed"]);
  model.forest.close("house");
  await model.forest.open("house");
  expect(workspace.calls.filter((tool) => tool === "list_children")).toHaveLength(2);
});

test("many children come page by page, and a hundred thousand cost no more than two hundred", async () => {
  const { workspace, model } = await opened((tree) => {
    for (let index = 0; index < 100_000; index += 1) tree.add("root", {}, `n${index}`);
  });
  expect(model.forest.rows.value).toHaveLength(202);
  expect(shown(model).at(-1)).toBe(" …");
  expect(model.forest.rows.value[1]).toMatchObject({ place: 1, of: 100_000 });
  expect(workspace.calls).toHaveLength(2);
  await model.forest.more("root");
  expect(model.forest.rows.value).toHaveLength(402);
});

test("a node far down is shown without all that stands before it", async () => {
  const { workspace, model } = await opened((tree) => {
    for (let index = 0; index < 5_000; index += 1) tree.add("root", {}, `n${index}`);
    tree.add("n4999", { name: "deep" }, "deep");
  });
  await model.reveal("deep");
  expect(model.selected.value).toBe("deep");
  expect(model.crumbs.value.map((crumb) => crumb.id)).toEqual(["root", "n4999", "deep"]);
  expect(shown(model)).toContain("  deep");
  expect(workspace.calls.length).toBeLessThan(30);
});

test("what an agent changes shows by itself, marked with who did it", async () => {
  vi.useFakeTimers();
  const { workspace, model } = await opened(house);
  await model.forest.open("house");
  workspace.set("kitchen", "size", 14);
  model.hear(changed("writer", "update_payload_property", "kitchen"));
  await settled();
  expect(item(model, "kitchen").payload).toEqual(toJson({ name: "Kitchen", size: 14 }));
  expect(model.marks.value.get("kitchen")).toMatchObject({ by: "writer", tool: "update_payload_property" });
  workspace.add("house", { name: "Attic" }, "attic");
  model.hear(changed("writer", "add_child", "attic"));
  workspace.move("bath", "shed");
  model.hear(changed("writer", "move_node", "bath"));
  await settled();
  expect(shown(model)).toEqual(["root", " house", "  kitchen", "  attic", " shed"]);
  expect(item(model, "shed").count).toBe(1);
  workspace.remove("house");
  model.hear(changed("writer", "remove_node", "house", "kitchen", "attic"));
  await settled();
  expect(shown(model)).toEqual(["root", " shed"]);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(model.marks.value.size).toBe(0);
  vi.useRealTimers();
});

test("a flood of changes is a few readings, not one for each", async () => {
  vi.useFakeTimers();
  const { workspace, model } = await opened(house);
  const before = workspace.calls.length;
  for (let index = 0; index < 1_000; index += 1) {
    workspace.add("house", {}, `f${index}`);
    model.hear(changed("flooder", "add_child", `f${index}`));
  }
  await settled();
  expect(item(model, "house").count).toBe(1_002);
  expect(workspace.calls.length - before).toBeLessThan(15);
  vi.useRealTimers();
});

test("nothing is read while the view is off screen, and all that was missed when it comes back", async () => {
  vi.useFakeTimers();
  const { workspace, model } = await opened(house);
  model.leave();
  const before = workspace.calls.length;
  workspace.add("root", {}, "new");
  model.hear(changed("writer", "add_child", "new"));
  await settled();
  expect(workspace.calls.length).toBe(before);
  await model.enter();
  expect(shown(model)).toContain(" new");
  vi.useRealTimers();
});

const setSize = (model: TreeModel, seen: Item, value: number) =>
  model.act({
    tool: "update_payload_property",
    args: { nodeId: seen.id, propertyName: "size", newValue: value },
    title: "Set size",
    basis: { item: seen, still: sameProperty("size", seen) },
  });

test("a change elsewhere does not stand in the way of one's own", async () => {
  const { workspace, model } = await opened(house);
  await model.forest.open("house");
  const seen = item(model, "kitchen");
  workspace.set("shed", "full", true);
  expect(await setSize(model, seen, 20)).not.toBeNull();
  expect(workspace.nodes.get("kitchen")?.payload.size).toBe(20);
  expect(model.notice.value).toBeNull();
});

test("a change of the very same thing is told, not overwritten, and can be overruled knowingly", async () => {
  vi.useFakeTimers();
  const { workspace, model } = await opened(house);
  await model.forest.open("house");
  const seen = item(model, "kitchen");
  workspace.set("kitchen", "size", 99);
  model.hear(changed("rival", "update_payload_property", "kitchen"));
  await settled();
  expect(await setSize(model, seen, 20)).toBeNull();
  expect(workspace.nodes.get("kitchen")?.payload.size).toBe(99);
  const notice = model.notice.value;
  expect(notice).toMatchObject({ kind: "conflict", message: expect.stringContaining("by rival") });
  expect(item(model, "kitchen").payload.size).toBe(99);
  if (notice?.kind === "conflict") notice.again();
  await settled();
  expect(workspace.nodes.get("kitchen")?.payload.size).toBe(20);
  expect(model.notice.value).toBeNull();
  vi.useRealTimers();
});

test("a lost answer is told, and trying again has no second effect", async () => {
  vi.useFakeTimers();
  const { workspace, model } = await opened(house);
  await model.forest.open("house");
  workspace.losesAnswer = new ApiError("gone", 0);
  const seen = item(model, "bath");
  await model.act({
    tool: "move_node",
    args: { nodeId: "bath", newParentId: "shed" },
    title: "Move",
    basis: { item: seen, still: samePlace(seen) },
  });
  expect(model.notice.value?.kind).toBe("unknown");
  const notice = model.notice.value;
  if (notice?.kind === "unknown") notice.again();
  await settled();
  expect(model.notice.value).toBeNull();
  expect(workspace.done.size).toBe(1);
  expect(item(model, "bath").parentId).toBe("shed");
  vi.useRealTimers();
});

test("a call that waits for an approval says so, and runs as the same call once it is given", async () => {
  vi.useFakeTimers();
  const { workspace, model } = await opened(house);
  await model.forest.open("house");
  workspace.held.add("move_node");
  const seen = item(model, "bath");
  await model.act({
    tool: "move_node",
    args: { nodeId: "bath", newParentId: "shed" },
    title: "Move",
    basis: { item: seen, still: samePlace(seen) },
  });
  expect(model.notice.value).toMatchObject({ kind: "approval", id: "ap1", approved: null });
  model.hear({ type: "approval", id: "other", agent: "a", byOperator: false, tool: "t", approved: true, at: 0 });
  expect(model.notice.value).toMatchObject({ approved: null });
  model.hear({ type: "approval", id: "ap1", agent: "a", byOperator: false, tool: "t", approved: true, at: 0 });
  expect(model.notice.value).toMatchObject({ approved: true });
  workspace.held.clear();
  const notice = model.notice.value;
  if (notice?.kind === "approval") notice.again();
  await settled();
  expect(workspace.nodes.get("bath")?.parent).toBe("shed");
  vi.useRealTimers();
});

test("undo goes with the latest version, and asks before it takes back what is not one's own", async () => {
  const { workspace, model, said } = await opened(house);
  workspace.set("shed", "full", true);
  expect(await model.undo()).toBeNull();
  expect(model.question.value?.step).toEqual({ what: "move Shed", by: null, byYou: false, at: null, ofVersion: "v-0" });
  expect(said).toEqual([]);
  expect(await model.confirm()).not.toBeNull();
  expect(said).toEqual(["Undo: move Shed"]);
  expect(model.question.value).toBeNull();
});

test("a query is completed with properties, facts, types and tags", () => {
  const words = { properties: ["status", "size"], types: ["Task", "Big room"], tags: ["urgent"] };
  const offered = (text: string): string[] => offersAt(text, text.length, words).map((offer) => offer.query);
  expect(offered("sta")).toEqual(["status "]);
  expect(offered("@ty")).toEqual(["@type = "]);
  expect(offered("size > 3 and @type = ")).toEqual(["size > 3 and @type = Task", 'size > 3 and @type = "Big room"']);
  expect(offered("@tag = u")).toEqual(["@tag = urgent"]);
  expect(offered("urg")).toEqual(["@tag = urgent"]);
  expect(offered("status = ")).toEqual([]);
});

test("nothing is moved into itself, and who goes along with one above is not moved twice", async () => {
  const { model } = await opened(house);
  await model.forest.open("house");
  const [inner] = model.forest.get("house")?.children ?? [];
  expect(canDrop(model, ["house"], inner ?? "", "inside")).toBe(false);
  expect(canDrop(model, ["house"], "house", "inside")).toBe(false);
  expect(canDrop(model, [inner ?? ""], "root", "inside")).toBe(true);
  expect(canDrop(model, [inner ?? ""], "root", "before")).toBe(false);
  expect(topmost(model, ["root", "house", inner ?? ""])).toEqual([]);
  expect(topmost(model, ["house", inner ?? ""])).toEqual(["house"]);
});

test("a refusal keeps its own words", async () => {
  const { model } = await opened(house);
  await model.act({ tool: "sort_children", args: {}, title: "Sort" });
  expect(model.notice.value).toEqual({ kind: "refused", title: "Sort", message: "refused: not_found" });
});

test("an agent without the reading tools is told what it lacks", async () => {
  const workspace = new SmallWorkspace();
  const model = new TreeModel(
    workspace,
    () => false,
    () => "k",
    () => undefined,
  );
  await model.enter();
  expect(model.problem.value).toContain("list_children");
  expect(workspace.calls).toEqual([]);
});

test("a patch holds what differs, and never seems to take a property away", () => {
  const before = toJson({ a: 1, b: { c: [1] }, d: "x" }) as JsonObject;
  expect(patchOf(before, toJson({ a: 2, b: { c: [1] }, d: "x", e: null }) as JsonObject)).toEqual(
    toJson({ a: 2, e: null }),
  );
  expect(() => patchOf(before, toJson({ a: 1, b: 1 }) as JsonObject)).toThrow(/cannot be taken away.*d/);
});

/** A node as the tree view holds it. */
import { get, type Json, type JsonObject } from "../../lib/json";
import { amount, objectOr, text } from "../facts";

export const ROOT = "root";

export interface Item {
  id: string;
  parentId: string | null;
  type: string;
  payload: JsonObject;
  /** How many children it has, loaded or not. */
  count: number;
  /** Those that are loaded, in order; null before the first are. */
  children: string[] | null;
  /** Where the next ones begin; null if there are no more. */
  next: string | null;
  open: boolean;
  busy: boolean;
  /** The version of the tree at which it was read. */
  version: string;
}

/** A node on the way to another. */
export interface Crumb {
  id: string;
  name: string;
}

/** Where it is and what it holds, without what the view knows of its children. */
export type Read = Pick<Item, "id" | "parentId" | "type" | "payload" | "count" | "version">;

export function readOf(json: Json | undefined, version: string): Read {
  const form = objectOr(json);
  const parent = text(form, "parentId");
  return {
    id: text(form, "nodeId"),
    parentId: parent === "" ? null : parent,
    type: text(form, "payloadType"),
    payload: objectOr(get(form, "payload")),
    count: amount(form, "childrenCount"),
    version,
  };
}

export function merged(known: Item | undefined, read: Read): Item {
  const held = known ?? { children: null, next: null, open: false, busy: false };
  const { children, next, open, busy } = held;
  return {
    ...read,
    children: read.count === 0 ? null : children,
    next: read.count === 0 ? null : next,
    open: open && read.count > 0,
    busy,
  };
}

/** What to call a node: its name or title, else its id. */
export function nameOf({ id, payload }: Pick<Item, "id" | "payload">): string {
  for (const key of ["name", "Name", "title", "label"]) {
    const value = get(payload, key);
    if (typeof value === "string" && value.trim() !== "") return value;
  }
  return id;
}

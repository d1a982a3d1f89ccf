/** One call, and one run, with all that is known about them. */
import { isObject, type Json, type JsonObject } from "../lib/json";
import type * as api from "./api-types";
import {
  type Approval,
  type AuditRecord,
  amount,
  approvalOf,
  at,
  auditRecordOf,
  list,
  moment,
  objectOr,
  text,
  texts,
} from "./facts";

export interface PropertyChange {
  name: string;
  /** Undefined where there was none, or is none any more. */
  old: Json | undefined;
  new: Json | undefined;
}

/** What became of one node. */
export interface NodeChange {
  kind: "added" | "removed" | "moved" | "reordered" | "changed";
  nodeId: string;
  name: string;
  /** The names of the parents that it left and came to, where it moved; else of its parent. */
  places: string[];
  properties: PropertyChange[];
}

export interface CallStory {
  record: AuditRecord;
  begun: boolean;
  approval: Approval | null;
  /** Null where it changed nothing in the tree, or the history does not reach back. */
  changes: NodeChange[] | null;
  leftOut: number;
  access: { verdict: string; rule: string; ancestor: string; approval: string; same: boolean } | null;
  delegated: AuditRecord[];
}

export interface RunSummary {
  id: string;
  agent: string;
  kind: string;
  startedAt: number;
  state: string;
  calls: number;
  seconds: number | null;
}

export interface RunEvent {
  type: string;
  agent: string;
  depth: number;
  callId: string;
  parentCallId: string;
  tool: string;
  text: string;
  code: string;
  reason: string;
  message: string;
  /** Milliseconds. */
  took: number;
  at: number;
  all: JsonObject;
}

export interface RunStory {
  id: string;
  agent: string;
  state: string;
  input: string;
  startedAt: number | null;
  events: RunEvent[];
  leftOut: number;
  kept: boolean;
}

export function callStoryOf(json: Json): CallStory {
  const given = objectOr<api.Call>(json);
  const approval = at(given, "approval");
  const change = at(given, "change");
  const access = at(given, "access");
  return {
    record: auditRecordOf(at(given, "record") ?? null),
    begun: at(given, "begun") === true,
    approval: isObject(approval) ? approvalOf(approval) : null,
    changes: isObject(change) ? changesOf(change) : null,
    leftOut: amount(objectOr<api.TreeChange>(change), "leftOut"),
    access: isObject(access) ? accessOf(access) : null,
    delegated: list(given, "delegated").map(auditRecordOf),
  };
}

function accessOf(json: JsonObject): CallStory["access"] {
  const given = objectOr<api.Access>(json);
  const verdict = objectOr<api.Verdict>(at(given, "verdict"));
  return {
    verdict: text(verdict, "verdict"),
    rule: text(verdict, "rule"),
    ancestor: text(verdict, "ancestor"),
    approval: text(given, "approval"),
    same: at(given, "same") === true,
  };
}

function changesOf(json: JsonObject): NodeChange[] {
  const given = objectOr<api.TreeChange>(json);
  const names = objectOr(at(given, "names"));
  const kinds = ["added", "removed", "moved", "reordered", "changed"] as const;
  const nameOf = (id: string): string => text(names, id) || id;
  return kinds.flatMap((kind) =>
    list(given, kind).map((one): NodeChange => {
      const entry = objectOr(one);
      const id = text(entry, "nodeId");
      const ends = kind === "moved" ? ["oldParentId", "newParentId"] : ["parentId"];
      return {
        kind,
        nodeId: id,
        name: nameOf(id),
        places: ends.map((end) => text(entry, end)).flatMap((end) => (end === "" ? [] : [nameOf(end)])),
        properties: propertiesOf(kind, entry),
      };
    }),
  );
}

function propertiesOf(
  kind: NodeChange["kind"],
  entry: ReturnType<typeof objectOr<Record<string, unknown>>>,
): PropertyChange[] {
  if (kind === "added" || kind === "removed") {
    const side = kind === "added" ? "new" : "old";
    const properties = Object.entries(objectOr(at(entry, "payload")));
    return properties.map(([name, value]) => ({ name, old: undefined, new: undefined, [side]: value }));
  }
  const beside = ["payloadType", "tags"].flatMap((name): [string, Json][] => {
    const value = at(entry, name);
    return isObject(value) ? [[name === "tags" ? "tags" : "type", value]] : [];
  });
  return [...Object.entries(objectOr(at(entry, "properties"))), ...beside].map(([name, value]) => {
    const change = objectOr(value);
    return { name, old: at(change, "old"), new: at(change, "new") };
  });
}

export function runSummaryOf(json: Json): RunSummary {
  const given = objectOr<api.RunSummary>(json);
  const seconds = at(given, "seconds");
  return {
    id: text(given, "id"),
    agent: text(given, "agent"),
    kind: text(given, "kind"),
    startedAt: moment(given, "startedAt") ?? 0,
    state: text(given, "state"),
    calls: amount(given, "calls"),
    seconds: seconds === null || seconds === undefined ? null : amount(given, "seconds"),
  };
}

export function runStoryOf(json: Json): RunStory {
  const given = objectOr<api.RunStory>(json);
  return {
    id: text(given, "id"),
    agent: text(given, "agent"),
    state: text(given, "state"),
    input: text(given, "input"),
    startedAt: moment(given, "startedAt"),
    events: list(given, "events").map(runEventOf),
    leftOut: amount(given, "leftOut"),
    kept: at(given, "kept") === true,
  };
}

function runEventOf(json: Json): RunEvent {
  const given = objectOr(json);
  const error = objectOr(at(given, "error"));
  const chain = texts(given, "chain");
  return {
    type: text(given, "type"),
    agent: text(given, "agent") || (chain.at(-1) ?? ""),
    depth: amount(given, "depth"),
    callId: text(given, "callId"),
    parentCallId: text(given, "parentCallId"),
    tool: text(given, "tool"),
    text: text(given, "text"),
    code: text(error, "code"),
    reason: text(error, "reason"),
    message: text(error, "message") || text(given, "message"),
    took: amount(given, "duration") * 1_000,
    at: Date.parse(text(given, "timestamp")) || 0,
    all: given,
  };
}

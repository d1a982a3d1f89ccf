/** The live events of a project, as the console cares for them. */
import { get, isObject, type Json, type JsonObject } from "../lib/json";
import { amount, objectOr, text, texts } from "./facts";
import { outcomeOf } from "./outcomes";

/** Who did it, in a word: the agent, or the operator who called as the agent. */
export function actorOf({ agent, byOperator }: { agent: string; byOperator: boolean }): string {
  return byOperator ? `operator as ${agent}` : agent;
}

/** Who wants to run a tool, and a verb, before its name. */
export function askerOf({ agent, byOperator }: { agent: string; byOperator: boolean }): string {
  return byOperator ? `The operator, acting as ${agent}, asked to run` : `${agent} wants to run`;
}

interface Told {
  /** Milliseconds since 1970. */
  at: number;
}

export interface CallNews extends Told {
  type: "call";
  callId: string;
  agent: string;
  tool: string;
  /** Empty if the call succeeded. */
  code: string;
  message: string;
  /** As the audit log names it. */
  outcome: string;
  replayed: boolean;
  /** Whether the operator called as the agent, as this page does. */
  byOperator: boolean;
  /** Milliseconds. */
  took: number;
}

export interface TreeNews extends Told {
  type: "tree";
  callId: string;
  agent: string;
  byOperator: boolean;
  tool: string;
  nodeIds: string[];
}

export interface ApprovalNews extends Told {
  type: "approval";
  id: string;
  agent: string;
  /** Whether the operator asked, acting as the agent. */
  byOperator: boolean;
  tool: string;
  /** Null while nobody decided; false also for one that was taken back. */
  approved: boolean | null;
}

/** Begun: events come from now on. Gap: some were lost. Pool: agents may have other tools. */
export type News = CallNews | TreeNews | ApprovalNews | { type: "begun" } | { type: "gap" } | { type: "pool" };

export function newsOf(json: Json | undefined): News | null {
  if (!isObject(json)) return null;
  switch (text(json, "type")) {
    case "watching":
      return { type: "begun" };
    case "events_lost":
      return { type: "gap" };
    case "pool_changed":
    case "configuration_read":
      return { type: "pool" };
    case "tool_succeeded":
    case "tool_failed":
      return callOf(json);
    case "tree_changed":
      return {
        type: "tree",
        callId: text(json, "callId"),
        agent: text(json, "agent"),
        byOperator: text(json, "by") === "operator",
        tool: text(json, "tool"),
        nodeIds: texts(json, "nodeIds"),
        at: momentOf(json),
      };
    case "approval_requested":
    case "approval_decided":
    case "approval_revoked": {
      const approved = text(json, "type") === "approval_revoked" ? false : get(json, "approved");
      return {
        type: "approval",
        id: text(json, "approvalId"),
        agent: text(json, "agent"),
        byOperator: text(json, "askedBy") === "operator",
        tool: text(json, "tool"),
        approved: typeof approved === "boolean" ? approved : null,
        at: momentOf(json),
      };
    }
    default:
      return null;
  }
}

function callOf(json: JsonObject): CallNews {
  const error = objectOr(get(json, "error"));
  const replayed = get(json, "replayed") === true;
  return {
    type: "call",
    callId: text(json, "callId"),
    agent: text(json, "agent"),
    tool: text(json, "tool"),
    code: text(error, "code"),
    message: text(error, "message"),
    outcome: replayed ? "replayed" : outcomeOf(text(error, "code"), text(error, "reason")),
    replayed,
    byOperator: text(json, "by") === "operator",
    took: amount(json, "duration") * 1_000,
    at: momentOf(json),
  };
}

function momentOf(json: JsonObject): number {
  const at = Date.parse(text(json, "timestamp"));
  return Number.isNaN(at) ? 0 : at;
}

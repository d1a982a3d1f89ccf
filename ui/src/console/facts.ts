/** What the operator's API tells, read from JSON that nobody vouches for. */
import { textIn } from "../lib/http";
import { emptyObject, get, isNumber, isObject, type Json, type JsonObject, numberOf } from "../lib/json";
import type * as api from "./api-types";

/** The session of calls that the operator makes as an agent begins so. */
const OPERATOR = "(operator)";

/** An object of the API as the page holds it: where the API names a few words, the server may say another. */
type Read<T> = T extends string ? string : T extends object ? { [K in keyof T]: Read<T[K]> } : T;

export type Source = Read<api.Source>;
export type Offered = Read<api.Offered>;
export type AgentSummary = Read<api.AgentSummary>;
export type Minute = api.TrafficMinute;
export type Rejected = api.RejectedTool;
/** The request of an HTTP tool; secrets are only named in it. */
export type Outgoing = api.OutgoingRequest;
export type EarlierCall = api.EarlierCall;

/** What a look at the whole audit log found. */
export type Verification = Pick<api.Verification, "whole" | "breach" | "removed" | "breaks" | "unchecked">;

export interface Project extends Omit<Read<api.Project>, "project" | "pendingApprovals"> {
  name: string;
  pending: number;
}

type Shown =
  | "id"
  | "state"
  | "agent"
  | "chain"
  | "tool"
  | "sends"
  | "definitionHash"
  | "rule"
  | "requestedAt"
  | "expiresAt"
  | "decidedAt"
  | "for"
  | "uses";

/** Its moments are milliseconds since 1970, as all moments here. */
export interface Approval extends Pick<Read<api.Approval>, Shown> {
  arguments: Json;
  definition: JsonObject;
  /** What it would change, in names; empty if only the call can tell. */
  effect: string;
  replaces: string;
  /** Whether the operator asked, acting as the agent. */
  byOperator: boolean;
  /** The same call before a crash cut it off: it may have run. */
  earlier: EarlierCall | null;
  decidedBy: string;
  reason: string;
  /** The call that has it, or used it last; empty if none did. */
  callId: string;
}

export interface Pin extends Omit<Read<api.Pin>, "diff" | "refusedBy"> {
  diff: string;
  refusedBy: string;
}

type Listed = "number" | "timestamp" | "agent" | "operation" | "outcome" | "targets" | "durationMs";

export interface AuditRecord extends Pick<Read<api.AuditRecord>, Listed> {
  /** What it is a record of: a call, or what a person or a stranger did. */
  kind: string;
  callId: string;
  chain: string[];
  parentCallId: string;
  runId: string;
  /** Who did it, where it is no call. */
  by: string;
  approval: api.UsedApproval | null;
  /** What is kept of them; undefined where nothing is. */
  arguments: Json | undefined;
  result: Json | undefined;
  details: Json | undefined;
  /** Whether the operator called as the agent, as this page does. */
  byOperator: boolean;
  code: string;
  message: string;
  /** The record as it stands in the log. */
  all: JsonObject;
}

export interface AuditPage {
  items: AuditRecord[];
  next: number | null;
}

export interface Verdict extends Read<Omit<api.Verdict, "ancestor" | "approval">> {
  tool: string;
  /** The rule by which a person approves each call; empty where nobody has to. */
  approval: string;
}

export interface Receipt extends Pick<api.Receipt, "agent" | "hash" | "warnings"> {
  verdicts: Verdict[];
  sources: Source[];
  rejected: Rejected[];
  tokens: Tokens;
  offered: Offered[];
}

/** About what an agent's list costs a model. */
export interface Tokens extends Pick<api.TokensEstimate, "total" | "budget"> {
  tools: Map<string, number>;
  sources: Map<string, number>;
}

export function projectOf(json: Json): Project {
  const given = objectOr<api.Project>(json);
  return {
    name: text(given, "project") || "Toolgrove",
    revision: amount(given, "revision"),
    sources: list(given, "sources").map((one) => ({
      ...sourceOf(one),
      instructions: text(objectOr<api.SourceOverview>(one), "instructions"),
    })),
    rejected: list(given, "rejected").map(rejectedOf),
    tools: amount(given, "tools"),
    agents: list(given, "agents").map((one) => {
      const agent = objectOr<api.AgentSummary>(one);
      return {
        name: text(agent, "name"),
        description: text(agent, "description"),
        role: text(agent, "role"),
        readOnly: at(agent, "readOnly") === true,
        tools: amount(agent, "tools"),
        tokensEstimate: amount(agent, "tokensEstimate"),
        warnings: texts(agent, "warnings"),
      };
    }),
    pending: amount(given, "pendingApprovals"),
    traffic: list(given, "traffic").map(minuteOf),
    healthy: at(given, "healthy") !== false,
    troubles: texts(given, "troubles"),
    version: text(given, "version"),
    file: text(given, "file") || null,
    folder: text(given, "folder") || null,
    tree: at(given, "tree") !== false,
    configuration: list(given, "configuration").map((one) => {
      const problem = objectOr<api.FileProblem>(one);
      return {
        line: amount(problem, "line"),
        column: amount(problem, "column"),
        path: text(problem, "path"),
        message: text(problem, "message"),
      };
    }),
  };
}

export function minutesOf(json: Json): Minute[] {
  return list(objectOr<api.Traffic>(json), "minutes").map(minuteOf);
}

function minuteOf(json: Json): Minute {
  const minute = objectOr<api.TrafficMinute>(json);
  return {
    minute: amount(minute, "minute"),
    calls: amount(minute, "calls"),
    failures: amount(minute, "failures"),
    refusals: amount(minute, "refusals"),
    waiting: amount(minute, "waiting"),
    cancelled: amount(minute, "cancelled"),
    meanMs: amount(minute, "meanMs"),
    slowestMs: amount(minute, "slowestMs"),
  };
}

export function approvalOf(json: Json): Approval {
  const given = objectOr<api.Approval>(json);
  return {
    id: text(given, "id"),
    agent: text(given, "agent"),
    chain: texts(given, "chain"),
    tool: text(given, "tool"),
    arguments: at(given, "arguments") ?? null,
    effect: text(given, "effect"),
    replaces: text(given, "replaces"),
    byOperator: text(given, "askedBy") === "operator",
    earlier: earlierOf(at(given, "earlier")),
    sends: outgoingOf(at(given, "sends") ?? null),
    definition: objectOr(at(given, "definition")),
    definitionHash: text(given, "definitionHash"),
    rule: text(given, "rule"),
    state: text(given, "state"),
    requestedAt: moment(given, "requestedAt") ?? 0,
    expiresAt: moment(given, "expiresAt") ?? 0,
    decidedAt: moment(given, "decidedAt"),
    decidedBy: text(given, "decidedBy"),
    reason: text(given, "reason"),
    for: text(given, "for") || null,
    uses: amount(given, "uses"),
    callId: text(given, "callId"),
  };
}

function earlierOf(json: Json | undefined): EarlierCall | null {
  if (!isObject(json)) return null;
  const given = objectOr<api.EarlierCall>(json);
  return { callId: text(given, "callId"), begunAt: text(given, "begunAt"), became: text(given, "became") || null };
}

function outgoingOf(json: Json): Outgoing | null {
  if (json === null) return null;
  const given = objectOr<api.OutgoingRequest>(json);
  return { method: text(given, "method"), url: text(given, "url") };
}

export function pinOf(json: Json): Pin {
  const given = objectOr<api.Pin>(json);
  return {
    server: text(given, "server"),
    tool: text(given, "tool"),
    hash: text(given, "hash"),
    pinnedAt: moment(given, "pinnedAt") ?? 0,
    pinnedBy: text(given, "pinnedBy"),
    seenHash: text(given, "seenHash") || null,
    seenAt: moment(given, "seenAt"),
    state: text(given, "state"),
    diff: text(given, "diff"),
    remarks: texts(given, "remarks"),
    refusedBy: text(given, "refusedBy"),
  };
}

/** Whether a definition waits for a person: a first one, or one that the server changed. */
export function waits(pin: Pin): boolean {
  return pin.state === "pending" || pin.state === "changed";
}

export function auditPageOf(json: Json): AuditPage {
  const given = objectOr<api.AuditPage>(json);
  const next = at(given, "next");
  return { items: list(given, "items").map(auditRecordOf), next: isNumber(next) ? numberOf(next) : null };
}

export function auditRecordOf(json: Json): AuditRecord {
  const given = objectOr<api.AuditRecord>(json);
  const error = objectOr<api.ErrorFacts>(at(given, "error"));
  return {
    number: amount(given, "number"),
    timestamp: text(given, "timestamp"),
    agent: text(given, "agent"),
    kind: text(given, "kind") || "call",
    callId: text(given, "callId"),
    chain: texts(given, "chain"),
    parentCallId: text(given, "parentCallId"),
    runId: text(given, "runId"),
    by: text(given, "by"),
    approval: usedApprovalOf(at(given, "approval")),
    arguments: at(given, "arguments"),
    result: at(given, "result"),
    details: at(given, "details"),
    byOperator: text(given, "session").startsWith(OPERATOR),
    operation: text(given, "operation"),
    outcome: text(given, "outcome"),
    targets: texts(given, "targets"),
    durationMs: amount(given, "durationMs"),
    code: text(error, "code"),
    message: text(error, "message"),
    all: given,
  };
}

function usedApprovalOf(json: Json | undefined): api.UsedApproval | null {
  if (!isObject(json)) return null;
  const given = objectOr<api.UsedApproval>(json);
  return { id: text(given, "id"), by: text(given, "by") };
}

export function receiptOf(json: Json): Receipt {
  const given = objectOr<api.Receipt>(json);
  return {
    agent: text(given, "agent"),
    hash: text(given, "hash"),
    verdicts: Object.entries(objectOr(at(given, "tools"))).map(([tool, one]) => {
      const verdict = objectOr<api.Verdict>(one);
      return {
        tool,
        verdict: text(verdict, "verdict"),
        rule: text(verdict, "rule"),
        source: text(verdict, "source"),
        approval: text(verdict, "approval"),
      };
    }),
    sources: Object.values(objectOr(at(given, "sources"))).map(sourceOf),
    rejected: list(given, "rejected").map(rejectedOf),
    warnings: texts(given, "warnings"),
    tokens: tokensOf(at(given, "tokensEstimate")),
    offered: list(given, "offered").map((one) => {
      const offered = objectOr<api.Offered>(one);
      return { kind: text(offered, "kind"), address: text(offered, "address"), source: text(offered, "source") };
    }),
  };
}

function tokensOf(json: Json | undefined): Tokens {
  const given = objectOr<api.TokensEstimate>(json);
  return {
    total: amount(given, "total"),
    budget: amount(given, "budget"),
    tools: numbersOf(at(given, "tools")),
    sources: numbersOf(at(given, "sources")),
  };
}

function numbersOf(json: Json | undefined): Map<string, number> {
  const found = Object.entries(objectOr<Record<string, Json>>(json));
  return new Map(found.flatMap(([name, one]) => (typeof one === "number" ? [[name, one] as const] : [])));
}

export function verificationOf(json: Json): Verification {
  const given = objectOr<api.Verification>(json);
  const whole = at(given, "whole");
  return {
    whole: typeof whole === "boolean" ? whole : null,
    breach: breachOf(at(given, "breach")),
    removed: amount(given, "removed"),
    breaks: list(given, "breaks").map((one) => {
      const gap = objectOr<api.Break>(one);
      return { number: amount(gap, "number"), after: amount(gap, "after"), lost: amount(gap, "lost") };
    }),
    unchecked: texts(given, "unchecked"),
  };
}

function breachOf(json: Json | undefined): api.Breach | null {
  if (!isObject(json)) return null;
  const given = objectOr<api.Breach>(json);
  return { number: amount(given, "number"), problem: text(given, "problem"), file: text(given, "file") };
}

function sourceOf(json: Json): Source {
  const given = objectOr<api.Source>(json);
  return {
    name: text(given, "name"),
    kind: text(given, "kind"),
    tools: amount(given, "tools"),
    problem: text(given, "problem"),
    notice: text(given, "notice"),
    takesLogin: at(given, "takesLogin") === true,
  };
}

function rejectedOf(json: Json): Rejected {
  const given = objectOr<api.RejectedTool>(json);
  return { name: text(given, "name"), source: text(given, "source"), reason: text(given, "reason") };
}

declare const claim: unique symbol;

/** JSON that claims to be a T: only T's keys are looked for, and each is checked before it is believed. */
type Claimed<T> = JsonObject & { readonly [claim]?: T };
type Key<T> = Extract<keyof T, string>;
type Anything = Record<string, unknown>;

export function objectOr<T = Anything>(json: Json | undefined): Claimed<T> {
  return isObject(json) ? json : emptyObject();
}

export function text<T = Anything>(given: Claimed<T>, key: Key<T>): string {
  return textIn(given, key) ?? "";
}

export function texts<T = Anything>(given: Claimed<T>, key: Key<T>): string[] {
  return list(given, key).filter((one) => typeof one === "string");
}

export function list<T = Anything>(given: Claimed<T>, key: Key<T>): Json[] {
  const value = at(given, key);
  return Array.isArray(value) ? value : [];
}

export function amount<T = Anything>(given: Claimed<T>, key: Key<T>): number {
  const value = at(given, key);
  return isNumber(value) ? numberOf(value) : 0;
}

export function moment<T>(given: Claimed<T>, key: Key<T>): number | null {
  const value = at(given, key);
  return isNumber(value) ? numberOf(value) * 1_000 : null;
}

export function at<T>(given: Claimed<T>, key: Key<T>): Json | undefined {
  return get(given, key);
}

/** What the operator's API tells, read from JSON that nobody vouches for. */
import { textIn } from "../lib/http";
import { emptyObject, get, isNumber, isObject, type Json, type JsonObject, numberOf } from "../lib/json";

/** The session of calls that the operator makes as an agent begins so. */
const OPERATOR = "(operator)";

export interface Source {
  name: string;
  kind: string;
  tools: number;
  /** Empty while it is up. */
  problem: string;
}

export interface AgentSummary {
  name: string;
  description: string;
  role: string;
  readOnly: boolean;
  tools: number;
  warnings: string[];
}

export interface Minute {
  /** Seconds since 1970. */
  minute: number;
  calls: number;
  failures: number;
  refusals: number;
}

export interface Rejected {
  name: string;
  source: string;
  reason: string;
}

export interface Project {
  name: string;
  revision: number;
  sources: Source[];
  rejected: Rejected[];
  tools: number;
  agents: AgentSummary[];
  pending: number;
  traffic: Minute[];
  healthy: boolean;
}

/** The request of an HTTP tool; secrets are only named in it. */
export interface Outgoing {
  method: string;
  url: string;
}

export interface Approval {
  id: string;
  agent: string;
  tool: string;
  arguments: Json;
  /** Of an HTTP tool. */
  sends: Outgoing | null;
  definition: JsonObject;
  definitionHash: string;
  rule: string;
  state: string;
  /** Milliseconds since 1970, as all moments here. */
  requestedAt: number;
  expiresAt: number;
  decidedAt: number | null;
  decidedBy: string;
  reason: string;
}

export interface Pin {
  server: string;
  tool: string;
  hash: string;
  pinnedAt: number;
  pinnedBy: string;
  seenHash: string | null;
  seenAt: number | null;
  changed: boolean;
  diff: string;
}

export interface AuditRecord {
  number: number;
  timestamp: string;
  agent: string;
  /** Whether the operator called as the agent, as this page does. */
  byOperator: boolean;
  operation: string;
  outcome: string;
  targets: string[];
  durationMs: number;
  code: string;
  /** The record as it stands in the log. */
  all: JsonObject;
}

export interface AuditPage {
  items: AuditRecord[];
  next: number | null;
}

export interface Verdict {
  tool: string;
  verdict: string;
  rule: string;
  source: string;
}

export interface Receipt {
  agent: string;
  hash: string;
  verdicts: Verdict[];
  sources: Source[];
  rejected: Rejected[];
  warnings: string[];
}

export interface Breach {
  number: number;
  problem: string;
}

export function projectOf(json: Json): Project {
  const form = objectOr(json);
  return {
    name: text(form, "project") || "Toolgrove",
    revision: amount(form, "revision"),
    sources: list(form, "sources").map(sourceOf),
    rejected: list(form, "rejected").map(rejectedOf),
    tools: amount(form, "tools"),
    agents: list(form, "agents").map((one) => {
      const agent = objectOr(one);
      return {
        name: text(agent, "name"),
        description: text(agent, "description"),
        role: text(agent, "role"),
        readOnly: get(agent, "readOnly") === true,
        tools: amount(agent, "tools"),
        warnings: texts(agent, "warnings"),
      };
    }),
    pending: amount(form, "pendingApprovals"),
    traffic: list(form, "traffic").map((one) => {
      const minute = objectOr(one);
      return { minute: amount(minute, "minute"), calls: amount(minute, "calls"), failures: amount(minute, "failures"), refusals: amount(minute, "refusals") };
    }),
    healthy: get(form, "healthy") !== false,
  };
}

export function approvalOf(json: Json): Approval {
  const form = objectOr(json);
  return {
    id: text(form, "id"),
    agent: text(form, "agent"),
    tool: text(form, "tool"),
    arguments: get(form, "arguments") ?? null,
    sends: outgoingOf(get(form, "sends") ?? null),
    definition: objectOr(get(form, "definition")),
    definitionHash: text(form, "definitionHash"),
    rule: text(form, "rule"),
    state: text(form, "state"),
    requestedAt: moment(form, "requestedAt") ?? 0,
    expiresAt: moment(form, "expiresAt") ?? 0,
    decidedAt: moment(form, "decidedAt"),
    decidedBy: text(form, "decidedBy"),
    reason: text(form, "reason"),
  };
}

function outgoingOf(json: Json): Outgoing | null {
  if (json === null) return null;
  const form = objectOr(json);
  return { method: text(form, "method"), url: text(form, "url") };
}

export function pinOf(json: Json): Pin {
  const form = objectOr(json);
  return {
    server: text(form, "server"),
    tool: text(form, "tool"),
    hash: text(form, "hash"),
    pinnedAt: moment(form, "pinnedAt") ?? 0,
    pinnedBy: text(form, "pinnedBy"),
    seenHash: textIn(form, "seenHash"),
    seenAt: moment(form, "seenAt"),
    changed: get(form, "state") === "changed",
    diff: text(form, "diff"),
  };
}

export function auditPageOf(json: Json): AuditPage {
  const form = objectOr(json);
  const next = get(form, "next");
  return { items: list(form, "items").map(auditRecordOf), next: isNumber(next) ? numberOf(next) : null };
}

export function auditRecordOf(json: Json): AuditRecord {
  const form = objectOr(json);
  return {
    number: amount(form, "number"),
    timestamp: text(form, "timestamp"),
    agent: text(form, "agent"),
    byOperator: text(form, "session").startsWith(OPERATOR),
    operation: text(form, "operation"),
    outcome: text(form, "outcome"),
    targets: texts(form, "targets"),
    durationMs: amount(form, "durationMs"),
    code: text(objectOr(get(form, "error")), "code"),
    all: form,
  };
}

export function receiptOf(json: Json): Receipt {
  const form = objectOr(json);
  return {
    agent: text(form, "agent"),
    hash: text(form, "hash"),
    verdicts: Object.entries(objectOr(get(form, "tools"))).map(([tool, one]) => {
      const verdict = objectOr(one);
      return { tool, verdict: text(verdict, "verdict"), rule: text(verdict, "rule"), source: text(verdict, "source") };
    }),
    sources: Object.values(objectOr(get(form, "sources"))).map(sourceOf),
    rejected: list(form, "rejected").map(rejectedOf),
    warnings: texts(form, "warnings"),
  };
}

export function breachOf(json: Json): Breach | null {
  const breach = get(objectOr(json), "breach");
  return isObject(breach) ? { number: amount(breach, "number"), problem: text(breach, "problem") } : null;
}

function sourceOf(json: Json): Source {
  const form = objectOr(json);
  return { name: text(form, "name"), kind: text(form, "kind"), tools: amount(form, "tools"), problem: text(form, "problem") };
}

function rejectedOf(json: Json): Rejected {
  const form = objectOr(json);
  return { name: text(form, "name"), source: text(form, "source"), reason: text(form, "reason") };
}

export function objectOr(json: Json | undefined): JsonObject {
  return isObject(json) ? json : emptyObject();
}

export function text(form: JsonObject, key: string): string {
  return textIn(form, key) ?? "";
}

export function texts(form: JsonObject, key: string): string[] {
  return list(form, key).filter((one) => typeof one === "string");
}

export function list(form: JsonObject, key: string): Json[] {
  const value = get(form, key);
  return Array.isArray(value) ? value : [];
}

export function amount(form: JsonObject, key: string): number {
  const value = get(form, key);
  return isNumber(value) ? numberOf(value) : 0;
}

function moment(form: JsonObject, key: string): number | null {
  const value = get(form, key);
  return isNumber(value) ? numberOf(value) * 1_000 : null;
}

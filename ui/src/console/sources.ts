/** What the operator's API tells of sources, access and tokens. */
import { get, isNumber, isObject, type Json, type JsonObject, numberOf } from "../lib/json";
import type * as api from "./api-types";
import { amount, list, objectOr, type Pin, pinOf, text, texts } from "./facts";

export interface Figures {
  calls: number;
  failures: number;
  refusals: number;
  medianMs: number | null;
  slowMs: number | null;
}

export interface SourceStatus {
  name: string;
  kind: string;
  state: string;
  problem: string;
  notice: string;
  takesLogin: boolean;
  instructions: string;
  where: string;
  lastWords: string[];
  restarts: boolean;
  tools: number;
  waiting: number;
  figures: Figures;
}

export interface SourceTool {
  name: string;
  ownName: string;
  standing: string;
  reason: string;
  description: string;
  /** Null while it is not offered. */
  changes: boolean | null;
  approval: string;
  tokens: number | null;
  definition: JsonObject | null;
  pin: Pin | null;
  figures: Figures;
  /** By agent: a verdict of its receipt, or “asks”. */
  access: Map<string, string>;
}

export interface SourceView {
  source: SourceStatus;
  agents: { name: string; tools: number; tokens: number }[];
  tools: SourceTool[];
}

export type Want = api.AccessWish["want"];

export interface AccessPreview {
  file: string;
  digest: string;
  diff: string;
  steps: string[];
  effects: { tool: string; before: string; after: string }[];
  writable: boolean;
  why: string;
}

export interface Token {
  id: string;
  holder: string;
  standing: string;
  used: boolean;
  /** Milliseconds since 1970; null without an end. */
  expiresAt: number | null;
  current: boolean;
}

export function sourcesOf(json: Json): SourceStatus[] {
  return list(objectOr<api.SourceList>(json), "items").map(statusOf);
}

export function sourceViewOf(json: Json): SourceView {
  const given = objectOr<api.SourceView>(json);
  return {
    source: statusOf(get(given, "source") ?? null),
    agents: list(given, "agents").map((one) => {
      const agent = objectOr<api.SourceAgent>(one);
      return { name: text(agent, "name"), tools: amount(agent, "tools"), tokens: amount(agent, "tokens") };
    }),
    tools: list(given, "tools").map(toolOf),
  };
}

function statusOf(json: Json): SourceStatus {
  const given = objectOr<api.SourceStatus>(json);
  return {
    name: text(given, "name"),
    kind: text(given, "kind"),
    state: text(given, "state"),
    problem: text(given, "problem"),
    notice: text(given, "notice"),
    takesLogin: get(given, "takesLogin") === true,
    instructions: text(given, "instructions"),
    where: text(given, "where"),
    lastWords: texts(given, "lastWords"),
    restarts: get(given, "restarts") === true,
    tools: amount(given, "tools"),
    waiting: amount(given, "waiting"),
    figures: figuresOf(get(given, "figures")),
  };
}

function toolOf(json: Json): SourceTool {
  const given = objectOr<api.SourceTool>(json);
  const changes = get(given, "changes");
  const definition = get(given, "definition");
  const pin = get(given, "pin");
  return {
    name: text(given, "name"),
    ownName: text(given, "ownName"),
    standing: text(given, "standing"),
    reason: text(given, "reason"),
    description: text(given, "description"),
    changes: typeof changes === "boolean" ? changes : null,
    approval: text(given, "approval"),
    tokens: numberAt(given, "tokens"),
    definition: isObject(definition) ? definition : null,
    pin: isObject(pin) ? pinOf(pin) : null,
    figures: figuresOf(get(given, "figures")),
    access: new Map(
      Object.entries(objectOr<Record<string, Json>>(get(given, "access"))).flatMap(([agent, said]) =>
        typeof said === "string" ? [[agent, said] as const] : [],
      ),
    ),
  };
}

function figuresOf(json: Json | undefined): Figures {
  const given = objectOr<api.Figures>(json);
  return {
    calls: amount(given, "calls"),
    failures: amount(given, "failures"),
    refusals: amount(given, "refusals"),
    medianMs: numberAt(given, "medianMs"),
    slowMs: numberAt(given, "slowMs"),
  };
}

export function previewOf(json: Json): AccessPreview {
  const given = objectOr<api.AccessPreview>(json);
  return {
    file: text(given, "file"),
    digest: text(given, "digest"),
    diff: text(given, "diff"),
    steps: texts(given, "steps"),
    effects: list(given, "effects").map((one) => {
      const effect = objectOr<api.AccessEffect>(one);
      return { tool: text(effect, "tool"), before: text(effect, "before"), after: text(effect, "after") };
    }),
    writable: get(given, "writable") === true,
    why: text(given, "why"),
  };
}

export function tokensOf(json: Json): Token[] {
  return list(objectOr<api.TokenList>(json), "items").map((one) => {
    const token = objectOr<api.TokenSummary>(one);
    const end = numberAt(token, "expiresAt");
    return {
      id: text(token, "id"),
      holder: text(token, "holder"),
      standing: text(token, "standing"),
      used: get(token, "used") === true,
      expiresAt: end === null ? null : end * 1_000,
      current: get(token, "current") === true,
    };
  });
}

function numberAt(given: JsonObject, key: string): number | null {
  const value = get(given, key);
  return isNumber(value) ? numberOf(value) : null;
}

/** The calls made from this browser: arguments and outcome, never results, never secrets. */
import { get, isNumber, isObject, type Json, type JsonObject, numberOf, toJson } from "./json";
import { parseJson } from "./json-parse";
import { printJson } from "./json-print";
import type { Storage } from "./storage";

export type Outcome = "ok" | "error" | "cancelled";

export interface Call {
  id: string;
  tool: string;
  args: JsonObject;
  /** Milliseconds since 1970. */
  at: number;
  /** How long the call took, in milliseconds. */
  took: number;
  outcome: Outcome;
}

const MOST_CALLS = 100;
const LONGEST_ARGS = 20_000;

export class History {
  constructor(
    private readonly storage: Storage,
    private readonly key: string,
  ) {}

  list(): Call[] {
    const text = this.storage.read(this.key);
    if (text === null) return [];
    try {
      const stored = parseJson(text);
      return Array.isArray(stored) ? stored.flatMap(callOf) : [];
    } catch {
      return [];
    }
  }

  add(call: Call): Call[] {
    if (printJson(call.args).length > LONGEST_ARGS) return this.list();
    const calls = [call, ...this.list()].slice(0, MOST_CALLS);
    this.storage.write(this.key, printJson(calls.map((each) => toJson(each))));
    return calls;
  }

  clear(): Call[] {
    this.storage.remove(this.key);
    return [];
  }
}

function callOf(stored: Json): Call[] {
  if (!isObject(stored)) return [];
  const [id, tool, args, at, took, outcome] = ["id", "tool", "args", "at", "took", "outcome"].map((key) =>
    get(stored, key),
  );
  if (typeof id !== "string" || typeof tool !== "string" || !isObject(args) || !isNumber(at) || !isNumber(took))
    return [];
  if (outcome !== "ok" && outcome !== "error" && outcome !== "cancelled") return [];
  return [{ id, tool, args, at: numberOf(at), took: numberOf(took), outcome }];
}

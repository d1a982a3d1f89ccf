/** Requests to the server, and what may come of them. */
import { get, isObject, type Json, type JsonObject } from "./json";
import { parseJson } from "./json-parse";

export type Fetch = typeof globalThis.fetch;

/**
 * ApiError
 *   the server could not be reached (`status` 0) or answered with an error
 */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

const GONE = "The server cannot be reached. It may have stopped, or the network is down.";

export const browserFetch: Fetch = (...request) => globalThis.fetch(...request);

/** The answer, whatever its status; only a server that cannot be reached is an ApiError. */
export async function send(fetch: Fetch, url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(GONE, 0);
  }
}

/** What an error answer says: the text under `error`, or under its `message` as JSON-RPC has it. */
export function errorText(text: string, status: number): string {
  const body = tryParse(text);
  const error = isObject(body) ? get(body, "error") : null;
  const said = isObject(error) ? textIn(error, "message") : error;
  return typeof said === "string" && said !== "" ? said : `The server answered with status ${status}.`;
}

export function tryParse(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

export function textIn(object: JsonObject, key: string): string | null {
  const value = get(object, key);
  return typeof value === "string" ? value : null;
}

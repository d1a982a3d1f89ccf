/** Deep links: `#/tool/<name>?args=<base64url JSON>`. A link fills in a form; it never runs anything. */
import { isObject, type JsonObject } from "./json";
import { parseJson } from "./json-parse";
import { printJson } from "./json-print";

export interface Route {
  tool: string | null;
  args: JsonObject | null;
}

export function toolHash(tool: string, args: JsonObject | null = null): string {
  const name = segment(tool);
  return `#/tool/${name}${args && Object.keys(args).length > 0 ? `?args=${toBase64Url(printJson(args))}` : ""}`;
}

export function parseHash(hash: string): Route {
  const match = /^#\/tool\/([^?]+)(?:\?(.*))?$/s.exec(hash);
  if (!match) return { tool: null, args: null };
  const args = new URLSearchParams(match[2] ?? "").get("args");
  return { tool: decode(match[1] as string), args: args === null ? null : argsIn(args) };
}

/** The arguments that a link carries; null if it carries none. */
export function argsIn(text: string): JsonObject | null {
  try {
    const value = parseJson(fromBase64Url(text));
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** One segment of an address; a lone surrogate, which has no encoding, becomes the replacement character. */
export function segment(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function toBase64Url(text: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

export function fromBase64Url(text: string): string {
  const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return new TextDecoder("utf-8", { fatal: true }).decode(
    Uint8Array.from(binary, (character) => character.charCodeAt(0)),
  );
}

/** Tools and the server as the API describes them; anything missing or of another type gets a quiet default. */
import { emptyObject, get, isObject, type Json, type JsonObject } from "./json";

export interface ServerInfo {
  name: string;
  version: string;
  /** Relative to the page; null where the server speaks MCP in a way that a page cannot use. */
  mcpPath: string | null;
  allowExecute: boolean;
}

/** An absent hint is null: the tool does not say. */
export interface Annotations {
  readOnly: boolean | null;
  destructive: boolean | null;
  idempotent: boolean | null;
  openWorld: boolean | null;
}

export interface ToolSummary {
  name: string;
  description: string;
  annotations: Annotations;
  tags: string[];
  requiresApproval: boolean;
  streaming: boolean;
}

export interface Example {
  title: string;
  description: string;
  inputs: JsonObject;
  output: Json | undefined;
}

export interface ToolDetail extends ToolSummary {
  inputSchema: JsonObject;
  outputSchema: JsonObject | null;
  documentation: string | null;
  examples: Example[];
}

export function infoOf(json: Json): ServerInfo {
  const info = isObject(json) ? json : emptyObject();
  return {
    name: text(info, "name") || "MCP server",
    version: text(info, "version"),
    mcpPath: text(info, "mcpPath") || null,
    allowExecute: get(info, "allowExecute") === true,
  };
}

export function toolSummaryOf(json: Json): ToolSummary[] {
  if (!isObject(json) || typeof get(json, "name") !== "string") return [];
  const hints = get(json, "annotations");
  const tags = get(json, "tags");
  return [
    {
      name: text(json, "name"),
      description: text(json, "description"),
      annotations: annotationsOf(isObject(hints) ? hints : emptyObject()),
      tags: Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string") : [],
      requiresApproval: get(json, "requiresApproval") === true,
      streaming: get(json, "streaming") === true,
    },
  ];
}

export function toolDetailOf(json: Json): ToolDetail | null {
  const [summary] = toolSummaryOf(json);
  if (!summary || !isObject(json)) return null;
  const input = get(json, "inputSchema");
  const output = get(json, "outputSchema");
  const examples = get(json, "examples");
  return {
    ...summary,
    inputSchema: isObject(input) ? input : emptyObject(),
    outputSchema: isObject(output) ? output : null,
    documentation: text(json, "documentation") || null,
    examples: Array.isArray(examples) ? examples.flatMap(exampleOf) : [],
  };
}

function exampleOf(json: Json, index: number): Example[] {
  if (!isObject(json)) return [];
  const inputs = get(json, "inputs");
  return [
    {
      title: text(json, "title") || `Example ${index + 1}`,
      description: text(json, "description"),
      inputs: isObject(inputs) ? inputs : emptyObject(),
      output: get(json, "output"),
    },
  ];
}

function annotationsOf(hints: JsonObject): Annotations {
  const hint = (key: string): boolean | null => {
    const value = get(hints, key);
    return typeof value === "boolean" ? value : null;
  };
  return {
    readOnly: hint("readOnlyHint"),
    destructive: hint("destructiveHint"),
    idempotent: hint("idempotentHint"),
    openWorld: hint("openWorldHint"),
  };
}

function text(object: JsonObject, key: string): string {
  const value = get(object, key);
  return typeof value === "string" ? value : "";
}

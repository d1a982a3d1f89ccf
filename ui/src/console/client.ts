/** Calls an agent's tools one by one, for the page itself rather than for a person who fills in a form. */
import type { Answer, Caller, Question, Reply } from "../lib/call";
import { readFailure, type ToolFailure } from "../lib/failure";
import { emptyObject, isObject, type JsonObject, toJson } from "../lib/json";
import { text } from "./facts";

/**
 * ToolError
 *   the tool, or the gate before it, said no; `failure` is what it said
 */
export class ToolError extends Error {
  constructor(readonly failure: ToolFailure) {
    super(failure.message);
  }

  get code(): string {
    return this.failure.code;
  }

  get reason(): string {
    return this.failure.facts ? text(this.failure.facts, "reason") : "";
  }

  fact(name: string): string {
    return this.failure.facts ? text(this.failure.facts, name) : "";
  }
}

/** Puts a tool's question before the person. */
export type Ask = (tool: string, question: Question) => Promise<Answer>;

export class AgentClient {
  constructor(
    private readonly caller: Caller,
    private readonly ask: Ask,
  ) {}

  /** The tool's result; anything else is a ToolError, or an ApiError where nobody knows what became of the call. */
  async call(name: string, given: Record<string, unknown>): Promise<JsonObject> {
    const args = toJson(given) as JsonObject;
    let reply: Reply | undefined;
    for (;;) {
      const request = { tool: { name, inputSchema: emptyObject() }, args, progress: false, ...(reply && { reply }) };
      let question: Question | null = null;
      for await (const event of this.caller.call(request, new AbortController().signal)) {
        if (event.type === "error") throw new ToolError(readFailure(event.error));
        if (event.type === "result") return isObject(event.result) ? event.result : emptyObject();
        if (event.type === "question") question = event.question;
      }
      if (!question) return emptyObject();
      reply = { question, answer: await this.ask(name, question) };
    }
  }
}

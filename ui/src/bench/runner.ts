/** Runs tools: one call per tool at a time, followed through progress, questions and its end. */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Answer, CallEvent, Caller, CallRequest, Progress, Question } from "../lib/call";
import { byteLength } from "../lib/format";
import { ApiError } from "../lib/http";
import type { Json, JsonObject } from "../lib/json";
import { printJson } from "../lib/json-print";

export interface Run {
  tool: string;
  args: JsonObject;
  /** What was asked for, to be asked for again. */
  request: CallRequest;
  status: "running" | "asking" | "done" | "failed" | "cancelled";
  startedAt: number;
  /** Milliseconds, once ended. */
  took: number;
  progress: Progress | null;
  messages: string[];
  /** Of a failed run what the tool said beyond a text; else null. */
  result: Json;
  /** Bytes of the result as JSON. */
  size: number;
  error: string;
  errorStatus: number;
  question: Question | null;
}

/** What it takes to go on with a call, or to end it. */
interface Flight {
  request: CallRequest;
  abort: AbortController;
}

const MOST_MESSAGES = 200;

/** Whether the call still goes on. */
export function isActive(run: Run | undefined): boolean {
  return run?.status === "running" || run?.status === "asking";
}

export class Runner {
  private readonly state: Signal<ReadonlyMap<string, Run>> = signal(new Map());
  private readonly flights = new Map<string, Flight>();

  constructor(
    private readonly caller: () => Caller,
    private readonly clock: () => number,
    private readonly onEnd: (run: Run) => void,
  ) {}

  get runs(): ReadonlySignal<ReadonlyMap<string, Run>> {
    return this.state;
  }

  isActive(tool: string): boolean {
    return isActive(this.state.peek().get(tool));
  }

  start(request: CallRequest): void {
    const { tool, args } = request;
    if (this.isActive(tool.name)) return;
    const run: Run = {
      tool: tool.name,
      args,
      request,
      status: "running",
      startedAt: this.clock(),
      took: 0,
      progress: null,
      messages: [],
      result: null,
      size: 0,
      error: "",
      errorStatus: 0,
      question: null,
    };
    this.put(run);
    void this.follow({ request, abort: new AbortController() });
  }

  answer(tool: string, answer: Answer): void {
    const run = this.state.peek().get(tool);
    const flight = this.flights.get(tool);
    if (run?.status !== "asking" || !run.question || !flight) return;
    this.put({ ...run, status: "running", question: null });
    const request = { ...flight.request, reply: { question: run.question, answer } };
    void this.follow({ ...flight, request });
  }

  /** Stops the call. The server sees the connection close, or the question cancelled. */
  cancel(tool: string): void {
    const run = this.state.peek().get(tool);
    if (run?.status === "asking") this.answer(tool, { action: "cancel" });
    else if (run?.status === "running") {
      this.flights.get(tool)?.abort.abort();
      this.end(tool, { status: "cancelled" });
    }
  }

  clear(tool: string): void {
    if (this.isActive(tool)) return;
    const next = new Map(this.state.peek());
    next.delete(tool);
    this.state.value = next;
  }

  private async follow(flight: Flight): Promise<void> {
    const tool = flight.request.tool.name;
    const { signal } = flight.abort;
    this.flights.set(tool, flight);
    try {
      for await (const event of this.caller().call(flight.request, signal)) {
        if (signal.aborted) return;
        this.take(tool, event);
      }
    } catch (error) {
      if (signal.aborted) return;
      this.end(tool, {
        status: "failed",
        error: error instanceof Error ? error.message : String(error),
        errorStatus: error instanceof ApiError ? error.status : 0,
      });
    }
  }

  private take(tool: string, event: CallEvent): void {
    const run = this.state.peek().get(tool);
    if (!run) return;
    switch (event.type) {
      case "progress": {
        const { message } = event.progress;
        const messages = message === null ? run.messages : [...run.messages, message].slice(-MOST_MESSAGES);
        this.put({ ...run, progress: event.progress, messages });
        return;
      }
      case "question":
        this.put({ ...run, status: "asking", question: event.question });
        return;
      case "result":
        this.end(tool, { status: "done", result: event.result, size: byteLength(printJson(event.result)) });
        return;
      case "error":
        this.end(tool, {
          status: "failed",
          error: event.error,
          errorStatus: event.status,
          result: event.result ?? null,
        });
    }
  }

  private end(tool: string, change: Partial<Run>): void {
    const run = this.state.peek().get(tool);
    if (!run) return;
    const ended = { ...run, ...change, question: null, took: this.clock() - run.startedAt };
    this.put(ended);
    this.flights.delete(tool);
    this.onEnd(ended);
  }

  private put(run: Run): void {
    this.state.value = new Map([...this.state.peek(), [run.tool, run]]);
  }
}

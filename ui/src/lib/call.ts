/** Calling a tool, whichever way the server offers. */
import type { Json, JsonObject } from "./json";

export interface Progress {
  progress: number;
  total: number | null;
  message: string | null;
}

/** What a tool wants to know in the middle of a call. */
export interface Question {
  /** Under which the answer is sent. */
  key: string;
  /** What the server wants back with the answer. */
  state: string | null;
  message: string;
  schema: JsonObject | null;
}

export type Answer = { action: "accept"; content: Json } | { action: "decline" } | { action: "cancel" };

export interface Reply {
  question: Question;
  answer: Answer;
}

/** Progress as often as the tool likes, then exactly one of the others. */
export type CallEvent =
  | { type: "progress"; progress: Progress }
  | { type: "result"; result: Json }
  /** `result` is all that a failing tool said, where that is more than a text. */
  | { type: "error"; error: string; status: number; result?: Json }
  | { type: "question"; question: Question };

export interface CallRequest {
  tool: { name: string; inputSchema: JsonObject };
  args: JsonObject;
  /** Whether to hear how far the call is, which takes a stream; yes unless told. */
  progress?: boolean;
  /** Present when the same call goes on after a question. */
  reply?: Reply;
}

export interface Caller {
  call(request: CallRequest, signal: AbortSignal): AsyncGenerator<CallEvent>;
}

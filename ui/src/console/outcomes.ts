/** How calls end, in words and colours: the same everywhere. */
import type { Tone } from "../components/Badge";
import type { AuditRecord } from "./facts";

export const OUTCOMES = [
  "success",
  "waiting",
  "refused",
  "failure",
  "cancelled",
  "replayed",
  "begun",
  "unknown",
] as const;

export const OUTCOME_TONES: Record<string, Tone> = {
  success: "good",
  replayed: "info",
  waiting: "info",
  failure: "danger",
  refused: "warning",
  cancelled: "neutral",
  begun: "neutral",
  unknown: "danger",
};

export const OUTCOME_MEANINGS: Record<string, string> = {
  success: "It did what it was asked for",
  waiting: "It waits for a person to agree; nothing has run",
  refused: "A rule stopped it, or there were too many calls",
  failure: "It did not work",
  cancelled: "Its client went away before it ended",
  replayed: "It had run before under the same key; the first result was given again",
  begun: "It was sent; how it ended is in a later record",
  unknown: "The gateway stopped while it ran: it may have had its effect",
};

/** How a call ended that answered with an error; the server decides in the same way for its records. */
export function outcomeOf(code: string, reason: string): string {
  if (code === "") return "success";
  if (reason === "approval_required") return "waiting";
  if (reason === "cancelled" || reason === "cut_off") return "cancelled";
  return code === "forbidden" || code === "rate_limited" ? "refused" : "failure";
}

/** A call that changes something outside has a record of its beginning, too, which says no more than that of its end. */
export function latestOfEach(newestFirst: AuditRecord[]): AuditRecord[] {
  const seen = new Set<string>();
  return newestFirst.filter(({ callId }) => !seen.has(callId) && seen.add(callId));
}

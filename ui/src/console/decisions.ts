/** How far requests for an approval are, in words and colours: the same everywhere. */
import type { Tone } from "../components/Badge";

export const DECISION_TONES: Record<string, Tone> = {
  pending: "info",
  approved: "good",
  claimed: "info",
  used: "good",
  unknown: "danger",
  rejected: "danger",
  revoked: "neutral",
  expired: "neutral",
};

export const DECISION_WORDS: Record<string, string> = {
  pending: "waiting",
  approved: "approved",
  claimed: "running now",
  used: "approved and used",
  unknown: "outcome unknown",
  rejected: "rejected",
  revoked: "revoked",
  expired: "expired",
};

export function decisionWord(state: string): string {
  return DECISION_WORDS[state] ?? state;
}

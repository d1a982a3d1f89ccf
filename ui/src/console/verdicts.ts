/** Why an agent does or does not have a tool, in words. */
import type { Tone } from "../components/Badge";
import type { Verdict } from "./facts";

export const MEANINGS: Record<string, { tone: Tone; meaning: string }> = {
  granted: { tone: "good", meaning: "The agent sees it and can call it" },
  asks: { tone: "info", meaning: "The agent can call it; a person approves each call first" },
  denied: { tone: "neutral", meaning: "The agent's section does not grant it" },
  masked: { tone: "neutral", meaning: "Hidden from this agent, though it selects the server" },
  unvalidated: { tone: "warning", meaning: "Its definition is not fit to be offered" },
  quarantined: { tone: "danger", meaning: "Its definition changed since someone accepted it" },
  pending: { tone: "warning", meaning: "Its definition waits until someone accepts it" },
  unavailable: { tone: "warning", meaning: "Its source does not answer, or it cannot be run from here" },
  restricted: {
    tone: "info",
    meaning: "Granted, but blocked by its role, by read-only mode, by depth, or because it is for MCP Apps",
  },
};

/** What the page calls a verdict; the API, the command line and the receipt keep their own words. */
const WORDS: Record<string, string> = {
  asks: "asks first",
  masked: "hidden",
  restricted: "blocked by role",
  quarantined: "changed",
  pending: "to review",
  unvalidated: "not usable",
};

export function standingWord(verdict: string): string {
  return WORDS[verdict] ?? verdict;
}

/** A verdict, where a grant that a person is asked about counts as one of its own. */
export function standingOf({ verdict, approval }: Verdict): string {
  return verdict === "granted" && approval !== "" ? "asks" : verdict;
}

export function toneOf(verdict: string): Tone {
  return MEANINGS[verdict]?.tone ?? "neutral";
}

/** The rule as a sentence; a rule of another form is shown as it is. */
export function inWords({ verdict, rule, source }: Verdict): string {
  const [, kind = "", pattern = ""] = /^(tools|deny|mcp\.[^:]+\.mask): (.*)$/s.exec(rule) ?? [];
  if (kind === "tools") return `Granted by tools: ${pattern}`;
  if (kind === "deny") return `Taken away by deny: ${pattern}`;
  if (kind !== "") return `Hidden by the mask ${pattern} of server ${source}`;
  if (rule === "no pattern in tools names it") return "Not listed in tools";
  if (verdict === "quarantined" && rule === "") return "Its definition changed; review it under Sources";
  return rule === "" ? "No reason was given" : rule.charAt(0).toUpperCase() + rule.slice(1);
}

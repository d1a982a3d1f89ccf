/** Why an agent has a tool, or has not, in words. */
import type { Tone } from "../components/Badge";
import type { Verdict } from "./facts";

export const MEANINGS: Record<string, { tone: Tone; meaning: string }> = {
  granted: { tone: "good", meaning: "The agent sees it and can call it" },
  denied: { tone: "neutral", meaning: "The agent's definition does not give it" },
  masked: { tone: "neutral", meaning: "Hidden from this agent, though it selects the server" },
  unvalidated: { tone: "warning", meaning: "Its definition is not fit to be offered" },
  quarantined: { tone: "danger", meaning: "Its definition changed since someone accepted it" },
  pending: { tone: "warning", meaning: "Its definition waits until someone accepts it" },
  unavailable: { tone: "warning", meaning: "Its source does not answer, or it cannot be run from here" },
  restricted: {
    tone: "info",
    meaning: "Given, but kept away by role, read-only mode, depth, or because it is for MCP Apps",
  },
};

export function toneOf(verdict: string): Tone {
  return MEANINGS[verdict]?.tone ?? "neutral";
}

/** The rule as a sentence; a rule of another form is shown as it is. */
export function inWords({ verdict, rule, source }: Verdict): string {
  const [, kind = "", pattern = ""] = /^(tools|deny|mcp\.[^:]+\.mask): (.*)$/s.exec(rule) ?? [];
  if (kind === "tools")
    return pattern === "*" ? "tools gives the agent everything" : `The pattern ${pattern} in tools gives it`;
  if (kind === "deny") return `The pattern ${pattern} in deny takes it away`;
  if (kind !== "") return `The mask ${pattern} of server ${source} hides it`;
  if (rule === "no pattern in tools names it") return "No pattern in tools names it";
  if (verdict === "quarantined" && rule === "") return "Its definition changed; look at Pins";
  return rule === "" ? "No reason was given" : rule.charAt(0).toUpperCase() + rule.slice(1);
}

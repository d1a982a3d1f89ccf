import type { ToolSummary } from "../lib/tool";

export type Tone = "neutral" | "good" | "danger" | "warning" | "info";

export interface BadgeText {
  text: string;
  tone: Tone;
  meaning: string;
}

export function Badge({ text, tone, meaning }: BadgeText) {
  return (
    <span class={`badge ${tone}`} title={meaning}>
      {text}
    </span>
  );
}

/** What a tool's annotations say, in words. */
export function badgesOf(tool: ToolSummary): BadgeText[] {
  const { readOnly, idempotent, openWorld } = tool.annotations;
  const badges: (BadgeText | false)[] = [
    readOnly === true && { text: "read-only", tone: "good", meaning: "Changes nothing" },
    isDestructive(tool) && {
      text: "destructive",
      tone: "danger",
      meaning: "May delete or overwrite something for good",
    },
    tool.requiresApproval && { text: "needs approval", tone: "warning", meaning: "Someone must agree before it runs" },
    idempotent === true && {
      text: "idempotent",
      tone: "neutral",
      meaning: "Running it twice with the same arguments changes nothing more",
    },
    openWorld === true && { text: "open world", tone: "neutral", meaning: "Reaches systems outside this server" },
    openWorld === false && { text: "closed world", tone: "neutral", meaning: "Stays within this server's own data" },
    tool.streaming && { text: "streams", tone: "info", meaning: "Sends parts of its result while it works" },
  ];
  return badges.filter((badge) => badge !== false);
}

/** The hint has no meaning for a tool that only reads. */
export function isDestructive(tool: ToolSummary): boolean {
  return tool.annotations.destructive === true && tool.annotations.readOnly !== true;
}

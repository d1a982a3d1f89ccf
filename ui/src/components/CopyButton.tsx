import { useEffect, useState } from "preact/hooks";
import { copyText } from "../lib/clipboard";
import { Icon, type IconName } from "./Icon";

interface Props {
  /** What the button says it copies, as in “Copy result”. */
  label: string;
  text: () => string;
  icon?: IconName;
  /** Show only the icon; the label stays its name. */
  compact?: boolean;
  testId?: string;
}

export function CopyButton({ label, text, icon = "copy", compact = false, testId }: Props) {
  const [state, setState] = useState<"idle" | "done" | "failed">("idle");
  useEffect(() => {
    if (state === "idle") return;
    const timer = setTimeout(() => setState("idle"), 1_600);
    return () => clearTimeout(timer);
  }, [state]);
  const said = state === "done" ? "Copied" : state === "failed" ? "Copy failed" : label;
  return (
    <button
      type="button"
      class={compact ? "icon-button" : "button small"}
      data-testid={testId}
      aria-label={compact ? label : undefined}
      title={compact ? said : undefined}
      onClick={async () => setState((await copyText(text())) ? "done" : "failed")}
    >
      <Icon name={state === "done" ? "check" : icon} />
      {!compact && <span>{said}</span>}
      <span class="visually-hidden" role="status">
        {state === "idle" ? "" : said}
      </span>
    </button>
  );
}

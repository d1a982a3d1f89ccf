import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./Icon";

interface CalloutProps {
  tone: "good" | "info" | "warning" | "danger";
  title: string;
  children?: ComponentChildren;
  id?: string;
  testId?: string;
}

/** A message within the page. */
export function Callout({ tone, title, children, id, testId }: CalloutProps) {
  return (
    <div class={`callout ${tone}`} id={id} data-testid={testId}>
      <Icon name={tone === "good" ? "check" : tone === "info" ? "info" : "warning"} />
      <div class="callout-text">
        <p class="callout-title">{title}</p>
        {children}
      </div>
    </div>
  );
}

interface EmptyProps {
  icon: IconName;
  title: string;
  children?: ComponentChildren;
  testId?: string;
}

/** What stands where there is nothing to show, and what to do about it. */
export function Empty({ icon, title, children, testId }: EmptyProps) {
  return (
    <div class="empty" data-testid={testId}>
      <span class="empty-icon">
        <Icon name={icon} size={20} />
      </span>
      <p class="empty-title">{title}</p>
      {children && <div class="empty-text">{children}</div>}
    </div>
  );
}

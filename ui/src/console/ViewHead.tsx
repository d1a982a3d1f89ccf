import type { ComponentChildren } from "preact";
import { useConsole } from "./model";

/** A view's title, what the view is for in one sentence, and the way to more. */
export function ViewHead({
  title,
  children,
  end,
}: {
  title: string;
  children: ComponentChildren;
  end?: ComponentChildren;
}) {
  const console = useConsole();
  return (
    <header class="view-head">
      <div class="view-title">
        <h1>{title}</h1>
        {end}
      </div>
      <p class="quiet">
        {children}{" "}
        <button
          type="button"
          class="link-button"
          data-testid="learn-more"
          onClick={() => (console.explaining.value = true)}
        >
          Learn more
        </button>
      </p>
    </header>
  );
}

import type { ComponentChildren } from "preact";
import { IconButton } from "../components/IconButton";
import { WORDS } from "./Explanation";
import { useConsole } from "./model";
import { hashOf } from "./route";

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
  const { view } = console.route.value;
  return (
    <header class="view-head">
      <div class="view-title">
        <div class="view-name">
          <h1>{title}</h1>
          {WORDS[view].words.length > 0 && (
            <IconButton
              icon="info"
              size={14}
              class="explain"
              label="What the words here mean"
              testId="explain"
              onClick={() => (console.explaining.value = true)}
            />
          )}
        </div>
        {end}
      </div>
      <p class="quiet">
        {children} <DocsLink page={WORDS[view].page} />
      </p>
    </header>
  );
}

/** The page of the documentation that says more. */
export function DocsLink({ page }: { page: string }) {
  return (
    <a class="learn-more" href={hashOf("docs", page)} data-testid="learn-more">
      Read the docs
    </a>
  );
}

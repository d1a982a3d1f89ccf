import { useEffect, useRef } from "preact/hooks";
import type { Opened } from "../bench/bench";
import { ToolBench } from "../bench/ToolBench";
import { Badge, badgesOf } from "../components/Badge";
import { CopyButton } from "../components/CopyButton";
import { Icon } from "../components/Icon";
import { Empty } from "../components/Notice";
import { NARROW } from "./layout";
import { useExplorer } from "./model";

/** Everything about one tool. */
export function ToolScreen({ name }: { name: string }) {
  const explorer = useExplorer();
  const state = explorer.catalog.opened.value.get(name);
  if (!state || state.state === "loading") return <p class="loading">Loading {name}…</p>;
  if (state.state === "failed") {
    const absent = state.status === 404;
    return (
      <div class="welcome">
        <h1 class="visually-hidden">{name}</h1>
        <Empty
          icon={absent ? "search" : "plug"}
          title={absent ? "This tool does not exist" : "This tool could not be loaded"}
          testId="tool-error"
        >
          <p role="alert">{state.message}</p>
          <p class="actions">
            <button type="button" class="button" onClick={() => void explorer.catalog.open(name)}>
              Retry
            </button>
            <a class="button ghost" href="#/">
              All tools
            </a>
          </p>
        </Empty>
      </div>
    );
  }
  return <Ready opened={state} />;
}

function Ready({ opened }: { opened: Opened }) {
  const { tool } = opened;
  const explorer = useExplorer();
  const heading = useRef<HTMLHeadingElement>(null);
  // On a phone the list leaves the screen, and focus with it.
  useEffect(() => {
    if (matchMedia(NARROW).matches) heading.current?.focus();
  }, []);
  return (
    <article class="screen" aria-label={tool.name} data-testid="tool-detail">
      <a class="back" href="#/">
        <Icon name="back" />
        All tools
      </a>
      <header class="screen-head">
        <div class="screen-title">
          <h1 ref={heading} tabIndex={-1}>
            {tool.name}
          </h1>
          <CopyButton label="Copy link" icon="link" text={() => explorer.link(opened)} testId="copy-link" />
        </div>
        {tool.description && <p class="screen-about">{tool.description}</p>}
        <div class="badges" data-testid="badges">
          {badgesOf(tool).map((badge) => (
            <Badge key={badge.text} {...badge} />
          ))}
          {tool.tags.map((tag) => (
            <span key={tag} class="tag">
              {tag}
            </span>
          ))}
        </div>
      </header>
      <ToolBench opened={opened} view={explorer.view.value} onView={(view) => (explorer.view.value = view)} />
    </article>
  );
}

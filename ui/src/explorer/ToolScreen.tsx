import { useEffect, useRef } from "preact/hooks";
import { Badge, badgesOf } from "../components/Badge";
import { CopyButton } from "../components/CopyButton";
import { Icon } from "../components/Icon";
import { JsonText } from "../components/JsonText";
import { Empty } from "../components/Notice";
import { Tabs } from "../components/Tabs";
import { printJson } from "../lib/json-print";
import type { ToolDetail } from "../lib/tool";
import type { Opened } from "./catalog";
import { Docs } from "./Docs";
import { useExplorer, type View } from "./model";
import { NARROW } from "./layout";
import { QuestionDialog } from "./QuestionDialog";
import { RequestCard } from "./RequestCard";
import { ResponseCard } from "./ResponseCard";

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
        <Empty icon={absent ? "search" : "plug"} title={absent ? "This tool does not exist" : "This tool could not be loaded"} testId="tool-error">
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
  const view = explorer.view.value;
  const setView = (next: View): void => {
    explorer.view.value = next;
  };
  const question = explorer.runner.runs.value.get(tool.name)?.question;
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
      <Tabs
        label="Tool"
        current={view}
        onSelect={setView}
        tabs={[
          { name: "run", label: "Run" },
          { name: "docs", label: "Documentation", ...(tool.examples.length > 0 ? { note: String(tool.examples.length) } : {}) },
          { name: "schema", label: "Schema" },
        ]}
      >
        {view === "run" && (
          <div class="bench">
            <RequestCard opened={opened} />
            <ResponseCard opened={opened} />
          </div>
        )}
        {view === "docs" && (
          <Docs
            tool={tool}
            onTry={(inputs) => {
              opened.draft.load(inputs);
              setView("run");
            }}
          />
        )}
        {view === "schema" && <Schemas tool={tool} />}
      </Tabs>
      {question && <QuestionDialog key={question.state ?? question.key} tool={tool.name} question={question} />}
    </article>
  );
}

function Schemas({ tool }: { tool: ToolDetail }) {
  const schemas = [
    ["Input schema", tool.inputSchema],
    ["Output schema", tool.outputSchema],
  ] as const;
  return (
    <div class="stack">
      {schemas.map(([label, schema]) => (
        <section key={label} class="card" aria-label={label}>
          <div class="card-head">
            <h2>{label}</h2>
            {schema && <CopyButton compact label={`Copy ${label.toLowerCase()}`} text={() => printJson(schema, 2)} />}
          </div>
          <div class="card-body">{schema ? <JsonText value={schema} label={label} /> : <p class="quiet">This tool does not describe its result.</p>}</div>
        </section>
      ))}
    </div>
  );
}

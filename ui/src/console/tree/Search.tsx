import { useEffect, useState } from "preact/hooks";
import { Icon } from "../../components/Icon";
import { Empty } from "../../components/Notice";
import { plural } from "../../lib/format";
import type { TreeModel } from "./model";
import type { Crumb } from "./node";

export function SearchBar({ model }: { model: TreeModel }) {
  const [text, setText] = useState(model.query.peek());
  useEffect(() => setText(model.query.value), [model.query.value]);
  const clear = (): void => {
    setText("");
    void model.find("");
  };
  return (
    <form
      class="dsl"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        void model.find(text);
      }}
    >
      <Icon name="search" />
      <input
        class="input mono"
        type="search"
        data-search
        data-testid="dsl"
        aria-label="Select nodes by a query"
        placeholder="status = open and @type = Task"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          if (event.currentTarget.value === "") clear();
        }}
        onKeyDown={(event) => {
          if (event.key !== "Escape" || text === "") return;
          event.preventDefault();
          clear();
        }}
      />
      <button type="submit" class="button">
        Find
      </button>
    </form>
  );
}

/** What a query found, or what is wrong with it. */
export function Hits({ model, onChoose }: { model: TreeModel; onChoose: (id: string) => void }) {
  const search = model.search.value;
  return (
    <div class="hits" data-testid="hits" data-state={search.state}>
      <p class="hits-head" role="status">
        {search.state === "busy" && "Searching…"}
        {search.state === "found" && `${plural(search.hits.length, "node")}${search.next === null ? "" : " and more"}`}
        {search.state === "bad" && "The query cannot be read"}
        <button type="button" class="link-button" onClick={() => void model.find("")}>
          Back to the tree
        </button>
      </p>
      {search.state === "bad" && (
        <>
          <pre class="code error-text" tabIndex={0} role="region" aria-label="What is wrong" data-testid="query-error">
            {search.message}
          </pre>
          <Examples model={model} />
        </>
      )}
      {search.state === "found" && search.hits.length === 0 && (
        <Empty icon="search" title="No node matches">
          <Examples model={model} />
        </Empty>
      )}
      {search.state === "found" && (
        <ul class="entries">
          {search.hits.map((hit) => (
            <li key={hit.id}>
              <button
                type="button"
                class="entry"
                aria-current={model.selected.value === hit.id ? "true" : undefined}
                data-testid="hit"
                data-node={hit.id}
                onClick={() => onChoose(hit.id)}
              >
                <span class="entry-head">
                  <span class="entry-name">{hit.name}</span>
                  <span class="tree-type">{hit.type}</span>
                </span>
                <Way crumbs={hit.path.slice(0, -1)} />
              </button>
            </li>
          ))}
        </ul>
      )}
      {search.state === "found" && search.next !== null && (
        <button type="button" class="more" onClick={() => void model.find(model.query.peek(), search.next)}>
          Show more
        </button>
      )}
    </div>
  );
}

function Way({ crumbs }: { crumbs: Crumb[] }) {
  return <span class="quiet clamp">{crumbs.map((crumb) => crumb.name).join(" / ")}</span>;
}

const EXAMPLES = [
  "name contains tomato",
  "//*[@childCount > 5]",
  "@tag = urgent",
  "/*",
  "status exists and not status = done",
];

function Examples({ model }: { model: TreeModel }) {
  return (
    <div class="examples" role="group" aria-label="Examples">
      <span class="eyebrow">Examples</span>
      {EXAMPLES.map((example) => (
        <button key={example} type="button" class="chip small" onClick={() => void model.find(example)}>
          {example}
        </button>
      ))}
    </div>
  );
}

import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../../components/Icon";
import { Empty } from "../../components/Notice";
import { plural } from "../../lib/format";
import { type Offer, offersAt } from "./completion";
import type { TreeModel } from "./model";
import type { Crumb } from "./node";

const WAIT = 250;
/** Types and linters know the role only beside a `list`. */
const COMBOBOX: object = { role: "combobox" };

/** Searches while one types, and offers what the query can go on with. */
export function SearchBar({ model }: { model: TreeModel }) {
  const [text, setText] = useState(model.query.peek());
  const [caret, setCaret] = useState(0);
  const [at, setAt] = useState(-1);
  const [closed, setClosed] = useState(true);
  const field = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => setText(model.query.value), [model.query.value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const words = model.words.value;
  const offers = words === null || closed ? [] : offersAt(text, caret, words);
  const later = (query: string): void => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => void model.findSoon(query), WAIT);
  };
  const clear = (): void => {
    clearTimeout(timer.current);
    setText("");
    setClosed(true);
    void model.find("");
  };
  const take = (offer: Offer): void => {
    setText(offer.query);
    setCaret(offer.caret);
    setAt(-1);
    setClosed(!offer.query.endsWith("= "));
    later(offer.query);
    requestAnimationFrame(() => {
      field.current?.focus();
      field.current?.setSelectionRange(offer.caret, offer.caret);
    });
  };
  const keys = (event: KeyboardEvent): void => {
    const chosen = offers[at];
    if (offers.length > 0 && event.key === "ArrowDown") setAt((at + 1) % offers.length);
    else if (offers.length > 0 && event.key === "ArrowUp") setAt(at <= 0 ? offers.length - 1 : at - 1);
    else if (chosen && (event.key === "Enter" || event.key === "Tab")) take(chosen);
    else if (event.key === "Escape" && offers.length > 0) setClosed(true);
    else if (event.key === "Escape" && text !== "") clear();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <form
      class="dsl"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        clearTimeout(timer.current);
        setClosed(true);
        void model.find(text);
      }}
    >
      <Icon name="search" />
      <input
        ref={field}
        class="input mono"
        type="search"
        data-search
        data-testid="dsl"
        {...COMBOBOX}
        aria-label="Search the tree"
        aria-expanded={offers.length > 0}
        aria-controls="query-offers"
        aria-autocomplete="list"
        aria-activedescendant={offers[at] ? `offer-${at}` : undefined}
        placeholder="tomato, or status = open"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onFocus={() => void model.learnWords().catch(() => undefined)}
        onBlur={() => setTimeout(() => setClosed(true), 150)}
        onInput={(event) => {
          const { value, selectionStart } = event.currentTarget;
          setText(value);
          setCaret(selectionStart ?? value.length);
          setAt(-1);
          setClosed(false);
          if (value === "") clear();
          else later(value);
        }}
        onKeyDown={keys}
      />
      <div class="offers" id="query-offers" role="listbox" aria-label="Completions" hidden={offers.length === 0}>
        {offers.map((offer, index) => (
          <div
            key={`${offer.kind} ${offer.label}`}
            id={`offer-${index}`}
            role="option"
            aria-selected={index === at}
            data-testid="offer"
            onPointerDown={(event) => {
              event.preventDefault();
              take(offer);
            }}
          >
            <span>{offer.label}</span> <span class="quiet">{offer.kind}</span>
          </div>
        ))}
      </div>
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
        {search.state === "half" && "Keep typing, or press Enter to see what is wrong"}
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
  "tomato",
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

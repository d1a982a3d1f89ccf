import { useEffect, useState } from "preact/hooks";
import { Callout, Empty } from "../../components/Notice";
import { get, isObject, type Json, printable } from "../../lib/json";
import { exact } from "../moment";
import { hashOf } from "../route";
import type { Author, Happening, TreeModel } from "./model";
import { messageOf } from "./model";
import type { Item } from "./node";

/** What happened to a node, newest first, and who last set each of its properties. */
export function NodeHistory({ model, item }: { model: TreeModel; item: Item }) {
  const [happened, setHappened] = useState<Happening[] | null>(null);
  const [authors, setAuthors] = useState<ReadonlyMap<string, Author>>(new Map());
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let here = true;
    Promise.all([model.historyOf(item.id), model.authors(item.id)])
      .then(([next, known]) => {
        if (!here) return;
        setHappened(next);
        setAuthors(known);
        setProblem("");
      })
      .catch((error) => here && setProblem(messageOf(error)));
    return () => {
      here = false;
    };
  }, [item.id, model.revision.value]);
  const who = (one: Happening): string =>
    authors.get(`${one.version} ${one.tool}`)?.byOperator ? `you, as ${one.agent}` : one.agent;
  if (problem !== "") return <Callout tone="danger" title={problem} />;
  if (happened === null) return <p class="loading">Loading…</p>;
  if (happened.length === 0) return <Empty icon="clock" title="Nothing is known of its past" />;
  const blame = Object.keys(item.payload).map((key) => ({
    key,
    by: happened.find((one) => isObject(one.new) && get(payloadOf(one.new), key) !== undefined),
  }));
  return (
    <div class="stack tight node-history" data-testid="node-history">
      <section aria-label="Who last set each property">
        <h3>Who last set what</h3>
        <dl class="blame">
          {blame.map(({ key, by }) => (
            <div key={key} data-testid="blame" data-property={key}>
              <dt>{key}</dt>
              <dd>{by ? `${who(by)}, ${by.at === null ? "at an unknown time" : exact(by.at)}` : "longer ago"}</dd>
            </div>
          ))}
        </dl>
      </section>
      <section aria-label="What happened">
        <h3>What happened</h3>
        <ol class="lines">
          {happened.map((one, index) => (
            <li key={`${one.version} ${index}`} class="item happening" data-testid="happening">
              <span class="item-what">
                <strong>{who(one)}</strong>{" "}
                <Call id={authors.get(`${one.version} ${one.tool}`)?.callId} tool={one.tool} />
              </span>
              <span class="meta">{one.at === null ? "" : exact(one.at)}</span>
              {differences(one, model).map(([key, before, after]) => (
                <span key={key} class="why">
                  <code>{key}</code>: <del>{before}</del> <ins>{after}</ins>
                </span>
              ))}
              {one.reordered && <span class="why quiet">another place among its siblings</span>}
            </li>
          ))}
        </ol>
      </section>
    </div>
  );
}

/** The tool, which leads to the call where that is known. */
function Call({ id, tool }: { id: string | undefined; tool: string }) {
  if (!id) return <code>{tool}</code>;
  return (
    <a href={hashOf("calls", id)} title="What this call did">
      <code>{tool}</code>
    </a>
  );
}

function payloadOf(state: Json): { [key: string]: Json } {
  const payload = isObject(state) ? get(state, "payload") : undefined;
  return isObject(payload) ? payload : {};
}

/** What differs, old and new, with names for parents. */
function differences(one: Happening, model: TreeModel): [string, string, string][] {
  if (one.old === undefined || one.new === undefined) return [];
  const [old, now] = [payloadOf(one.old), payloadOf(one.new)];
  const keys = [...new Set([...Object.keys(old), ...Object.keys(now)])];
  const told = keys.map((key): [string, string, string] => [key, shown(old[key]), shown(now[key])]);
  const parents = [one.old, one.new].map((state) => (isObject(state) ? get(state, "parentId") : undefined));
  if (typeof parents[0] === "string" && typeof parents[1] === "string")
    told.push(["moved", model.forest.name(parents[0]), model.forest.name(parents[1])]);
  return told;
}

function shown(value: Json | undefined): string {
  return value === undefined ? "–" : printable(value);
}

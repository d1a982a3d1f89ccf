import { useMemo, useState } from "preact/hooks";
import { byteLength, plural, size } from "../lib/format";
import { isObject, type Json, JsonNumber, type JsonObject } from "../lib/json";
import { pictureOf } from "../lib/media";
import { Icon } from "./Icon";
import { Scalar } from "./JsonScalar";
import { columnsOf, JsonTable } from "./JsonTable";

const PAGE = 100;
/** A branch this deep opens as a tree of its own, so that no nesting can exhaust the page. */
const DEEPEST = 12;

interface Step {
  name: string;
  value: Json;
}

/** A value as a tree that opens and closes. */
export function JsonTree({ value, label }: { value: Json; label: string }) {
  const [trail, setTrail] = useState<Step[]>([]);
  const root = trail.at(-1)?.value ?? value;
  return (
    <div class="tree">
      {trail.length > 0 && (
        <nav class="trail" aria-label="Branch">
          <button type="button" class="link-button" onClick={() => setTrail([])}>
            {label}
          </button>
          <span class="quiet">{plural(trail.length * DEEPEST, "level")} down</span>
          <button type="button" class="link-button" onClick={() => setTrail(trail.slice(0, -1))}>
            Back up
          </button>
        </nav>
      )}
      <Node
        key={trail.length}
        name={null}
        value={root}
        depth={0}
        label={trail.at(-1)?.name ?? label}
        onDeeper={(step) => setTrail([...trail, step])}
      />
    </div>
  );
}

interface NodeProps {
  name: string | null;
  value: Json;
  depth: number;
  label: string;
  onDeeper: (step: Step) => void;
}

function Node({ name, value, depth, label, onDeeper }: NodeProps) {
  const container = Array.isArray(value) || isObject(value);
  const entries = container ? entryCount(value) : 0;
  const [open, setOpen] = useState(depth < 2 || (depth < 4 && entries <= 6));
  if (!container || entries === 0) {
    return (
      <div class="node leaf">
        {name !== null && <Key name={name} />}
        <Scalar value={value} />
      </div>
    );
  }
  if (depth >= DEEPEST) {
    return (
      <div class="node leaf">
        {name !== null && <Key name={name} />}
        <button
          type="button"
          class="more"
          data-testid="show-deeper"
          onClick={() => onDeeper({ name: name ?? label, value })}
        >
          Show more levels ({summary(value)})
        </button>
      </div>
    );
  }
  const said = name ?? label;
  return (
    <div class="node">
      <button type="button" class="node-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class={`twist ${open ? "open" : ""}`}>
          <Icon name="chevron" size={12} />
        </span>
        {name === null ? <span class="visually-hidden">{label} </span> : <Key name={name} />}
        <span class="node-summary">{summary(value)}</span>
      </button>
      {open && <Children value={value} depth={depth} label={said} onDeeper={onDeeper} />}
    </div>
  );
}

function Children({
  value,
  depth,
  label,
  onDeeper,
}: {
  value: Json[] | JsonObject;
  depth: number;
  label: string;
  onDeeper: (step: Step) => void;
}) {
  const [limit, setLimit] = useState(PAGE);
  const columns = useMemo(() => (Array.isArray(value) ? columnsOf(value) : null), [value]);
  if (Array.isArray(value) && columns) return <JsonTable items={value} columns={columns} label={label} />;
  const entries: [string, Json][] = Array.isArray(value)
    ? value.slice(0, limit).map((item, index) => [String(index), item])
    : Object.entries(value).slice(0, limit);
  const left = entryCount(value) - entries.length;
  const picture = isObject(value) ? pictureOf(value) : null;
  return (
    <>
      {picture && (
        <figure class="picture">
          <img src={`data:${picture.mimeType};base64,${picture.data}`} alt={`Picture in ${label}`} />
          <figcaption>
            {picture.mimeType} · {size(Math.floor((picture.data.length * 3) / 4))}
          </figcaption>
        </figure>
      )}
      <ul class="branch">
        {entries.map(([key, item]) => (
          <li key={key}>
            <Node name={key} value={item} depth={depth + 1} label={key} onDeeper={onDeeper} />
          </li>
        ))}
      </ul>
      {left > 0 && (
        <button type="button" class="more" data-testid="show-more" onClick={() => setLimit(limit + PAGE)}>
          Show more ({left.toLocaleString("en")} left)
        </button>
      )}
    </>
  );
}

function Key({ name }: { name: string }) {
  return <span class="j-key">{name === "" ? '""' : name}</span>;
}

function entryCount(value: Json[] | JsonObject): number {
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}

function summary(value: Json): string {
  if (Array.isArray(value)) return plural(value.length, "item");
  if (isObject(value)) return plural(Object.keys(value).length, "key");
  return value instanceof JsonNumber ? value.text : size(byteLength(String(value)));
}

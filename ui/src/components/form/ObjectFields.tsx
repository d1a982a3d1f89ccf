import { useState } from "preact/hooks";
import { get, isObject, type Json, type JsonObject, objectOf, withKey } from "../../lib/json";
import { extraSchemaOf, fieldOf, propertiesOf, requiredOf } from "../../lib/schema";
import { pointer } from "../../lib/validate";
import { ExtraEntries } from "./ExtraEntries";
import type { Slot } from "./slot";

const PAGE = 60;

/** The fields of an object, required ones first. */
export function ObjectFields({ slot }: { slot: Slot }) {
  const [limit, setLimit] = useState(PAGE);
  const { schema } = fieldOf(slot.schema, slot.draft.schema);
  const required = requiredOf(schema);
  const object = isObject(slot.value) ? slot.value : objectOf([]);
  const properties = Object.entries(propertiesOf(schema));
  const ordered = [
    ...properties.filter(([name]) => required.has(name)),
    ...properties.filter(([name]) => !required.has(name)),
  ];
  const extra = extraSchemaOf(schema);
  const known = new Set(properties.map(([name]) => name));
  const unknown = Object.keys(object).filter((name) => !known.has(name));
  return (
    <>
      {ordered.slice(0, limit).map(([name, property]) => (
        <slot.Field
          key={name}
          slot={{
            ...slot,
            path: pointer(slot.path, name),
            name,
            schema: property,
            required: required.has(name),
            row: false,
            depth: slot.depth + 1,
            value: get(object, name),
            onChange: (value) => slot.onChange(inOrder(withKey(current(slot) ?? object, name, value), known)),
          }}
        />
      ))}
      {ordered.length > limit && (
        <button type="button" class="button small" onClick={() => setLimit(limit + PAGE)}>
          Show more fields ({ordered.length - limit} left)
        </button>
      )}
      {(extra !== undefined || unknown.length > 0) && (
        <ExtraEntries slot={{ ...slot, value: object }} schema={extra} known={known} />
      )}
      {ordered.length === 0 && extra === undefined && unknown.length === 0 && slot.depth === 0 && (
        <p class="quiet">This tool takes no arguments.</p>
      )}
    </>
  );
}

/** The entries in the order the schema lists them, so that the JSON reads like the form. */
function inOrder(object: JsonObject, known: ReadonlySet<string>): JsonObject {
  const first = [...known].filter((name) => Object.hasOwn(object, name));
  const rest = Object.keys(object).filter((name) => !known.has(name));
  return objectOf([...first, ...rest].map((name) => [name, object[name] as Json]));
}

/** The object as it is now: two fields may change before the next render. */
function current(slot: Slot) {
  let node = slot.draft.value.peek() as ReturnType<typeof get>;
  for (const step of slot.path.split("/").slice(1)) {
    const key = step.replace(/~1/g, "/").replace(/~0/g, "~");
    if (Array.isArray(node)) node = node[Number(key)];
    else node = isObject(node) ? get(node, key) : undefined;
  }
  return isObject(node) ? node : undefined;
}

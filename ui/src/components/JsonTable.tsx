import { useState } from "preact/hooks";
import { plural } from "../lib/format";
import { get, isObject, type Json, type JsonObject } from "../lib/json";
import { pictureOf } from "../lib/media";
import { Scalar } from "./JsonScalar";

const FIRST = 50;
const STEP = 250;
const MOST_COLUMNS = 16;

/** The columns when the list is one of flat objects, else null. */
export function columnsOf(items: Json[]): string[] | null {
  const columns = new Set<string>();
  if (items.length < 2) return null;
  for (const item of items) {
    if (!isObject(item) || pictureOf(item)) return null;
    for (const [key, value] of Object.entries(item)) {
      if (Array.isArray(value) || isObject(value) || (typeof value === "string" && value.length > 2_000)) return null;
      columns.add(key);
      if (columns.size > MOST_COLUMNS) return null;
    }
  }
  return columns.size > 0 ? [...columns] : null;
}

export function JsonTable({ items, columns, label }: { items: Json[]; columns: string[]; label: string }) {
  const [limit, setLimit] = useState(FIRST);
  return (
    <div class="json-table">
      <div class="table-scroll" tabIndex={0} role="region" aria-label={`${label}, ${plural(items.length, "row")}`}>
        <table>
          <thead>
            <tr>
              <th scope="col" class="index">
                #
              </th>
              {columns.map((column) => (
                <th key={column} scope="col">
                  {column === "" ? "(empty)" : column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {(items.slice(0, limit) as JsonObject[]).map((item, index) => (
              <tr key={index}>
                <td class="index">{index + 1}</td>
                {columns.map((column) => {
                  const value = get(item, column);
                  return (
                    <td key={column} class={typeof value === "string" && value.length > 32 ? "wrap" : undefined}>
                      {value === undefined ? <span class="quiet">–</span> : <Scalar value={value} bare />}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {items.length > limit && (
        <button type="button" class="more" data-testid="show-more" onClick={() => setLimit(limit + STEP)}>
          Show more rows ({(items.length - limit).toLocaleString("en")} left)
        </button>
      )}
    </div>
  );
}

import { useEffect, useRef, useState } from "preact/hooks";
import { type Json, sameJson } from "../../lib/json";
import { JsonError, parseJson } from "../../lib/json-parse";
import { printJson } from "../../lib/json-print";
import type { ControlProps } from "./slot";

/** Any JSON, typed by hand. Text that is not JSON yet is kept here and blocks sending. */
export function JsonControl({ slot, field, id, aria }: ControlProps) {
  const { draft, path, value } = slot;
  const [text, setText] = useState(() => textFor(value));
  const own = useRef<Json | undefined>(value);
  useEffect(() => {
    const same =
      value === undefined || own.current === undefined ? value === own.current : sameJson(value, own.current);
    if (same) return;
    own.current = value;
    setText(textFor(value));
    draft.setUnparsed(path, null);
  }, [value]);
  useEffect(() => () => draft.setUnparsed(path, null), [path]);

  const edit = (next: string): void => {
    setText(next);
    try {
      own.current = next.trim() === "" ? undefined : parseJson(next);
      draft.setUnparsed(path, null);
      slot.onChange(own.current);
    } catch (error) {
      draft.setUnparsed(path, `Not JSON: ${error instanceof JsonError ? error.message : String(error)}`);
      draft.touch(path);
    }
  };
  return (
    <textarea
      class="input area mono"
      id={id}
      rows={text.includes("\n") ? 5 : 2}
      spellcheck={false}
      placeholder={field.kind === "object" ? "{ }" : field.kind === "array" ? "[ ]" : "JSON"}
      value={text}
      onInput={(event) => edit(event.currentTarget.value)}
      {...aria}
    />
  );
}

function textFor(value: Json | undefined): string {
  return value === undefined ? "" : printJson(value, 2);
}

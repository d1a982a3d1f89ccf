import { useState } from "preact/hooks";
import { printable } from "../../lib/json";
import { isSecret, numberAt, textOf } from "../../lib/schema";
import { IconButton } from "../IconButton";
import type { ControlProps } from "./slot";

type InputType = "text" | "email" | "url" | "date";
const INPUT_TYPES: Record<string, InputType> = { email: "email", uri: "url", url: "url", date: "date" };
const LONG_NAMES =
  /^(body|text|content|contents|message|prompt|query|sql|code|script|markdown|notes?|description|template)$/i;

/** A text: one line or many, or the browser's own input for a known format. Emptied, it is not sent. */
export function TextControl({ slot, field, id, aria }: ControlProps) {
  const text = slot.value === undefined || slot.value === null ? "" : printable(slot.value);
  const format = textOf(field.schema, "format") ?? "";
  const [tall, setTall] = useState(() => wantsLines(slot.name, format, numberAt(field.schema, "maxLength")));
  const change = (value: string): void => slot.onChange(value === "" ? undefined : value);
  const secret = isSecret(field.schema);
  if (!secret && (tall || text.includes("\n"))) {
    return (
      <textarea
        class="input area"
        id={id}
        rows={4}
        value={text}
        onInput={(event) => change(event.currentTarget.value)}
        {...aria}
      />
    );
  }
  const type = secret ? "password" : inputType(format, text);
  return (
    <div class="input-row">
      <input
        class="input"
        id={id}
        type={type as "text"}
        autocomplete="off"
        spellcheck={false}
        placeholder={format === "date-time" ? "2026-01-31T09:30:00Z" : undefined}
        value={text}
        onInput={(event) => change(event.currentTarget.value)}
        {...aria}
      />
      {format === "date-time" && (
        <button
          type="button"
          class="button small"
          aria-label={`Set ${slot.name} to now`}
          onClick={() => change(`${new Date().toISOString().slice(0, 19)}Z`)}
        >
          Now
        </button>
      )}
      {format === "" && !secret && (
        <IconButton
          icon="lines"
          label={`Write ${slot.name} on several lines`}
          title="Several lines"
          onClick={() => setTall(true)}
        />
      )}
    </div>
  );
}

/** A date input shows nothing for a text that is not a date; then a plain input is honest. */
function inputType(format: string, text: string): InputType {
  const type = Object.hasOwn(INPUT_TYPES, format) ? (INPUT_TYPES[format] as InputType) : "text";
  return type === "date" && text !== "" && !/^\d{4}-\d{2}-\d{2}$/.test(text) ? "text" : type;
}

function wantsLines(name: string, format: string, longest: number | undefined): boolean {
  if (format === "textarea" || format === "multiline" || format === "markdown") return true;
  return format === "" && (LONG_NAMES.test(name) || (longest !== undefined && longest > 200));
}

import { get, isNumber, type Json, numberText, printable, sameJson } from "../../lib/json";
import { parseJson } from "../../lib/json-parse";
import type { ControlProps } from "./slot";

const MOST_OPTIONS = 1_000;

/** A value the schema fixes; the only choice is whether to send it. */
export function ConstControl({ slot, field, id, aria }: ControlProps) {
  const constant = field.kind === "null" ? null : (get(field.schema, "const") ?? null);
  if (slot.required) {
    return <input class="input fixed" id={id} readOnly value={printable(slot.value ?? constant)} {...aria} />;
  }
  return (
    <label class="check">
      <input
        type="checkbox"
        id={id}
        checked={slot.value !== undefined}
        onChange={(event) => slot.onChange(event.currentTarget.checked ? constant : undefined)}
        {...aria}
      />
      <span>
        Send <code>{printable(constant)}</code>
      </span>
    </label>
  );
}

export function EnumControl({ slot, field, id, aria }: ControlProps) {
  const choices = field.choices.slice(0, MOST_OPTIONS);
  const index = choices.findIndex((choice) => slot.value !== undefined && sameJson(choice.value, slot.value));
  const foreign = index < 0 && slot.value !== undefined;
  return (
    <select
      class="input select"
      id={id}
      value={foreign ? "foreign" : String(index)}
      onChange={(event) => slot.onChange(choices[Number(event.currentTarget.value)]?.value)}
      {...aria}
    >
      <option value="-1">{slot.required ? "Choose…" : "Not set"}</option>
      {foreign && <option value="foreign">{printable(slot.value as Json)}</option>}
      {choices.map((choice, at) => (
        <option key={at} value={String(at)}>
          {choice.label === "" ? "(empty text)" : choice.label}
        </option>
      ))}
    </select>
  );
}

export function BooleanControl({ slot, id, aria }: ControlProps) {
  const options: [string, Json | undefined][] = [
    ["true", true],
    ["false", false],
  ];
  if (!slot.required) options.push(["not set", undefined]);
  return (
    <div class="segments">
      {options.map(([label, value], index) => (
        <label key={label} class="segment">
          <input
            type="radio"
            name={id}
            id={index === 0 ? id : undefined}
            checked={slot.value === value}
            aria-invalid={aria["aria-invalid"]}
            onChange={() => slot.onChange(value)}
          />
          <span>{label}</span>
        </label>
      ))}
    </div>
  );
}

/** Text that is not a number stays text, so the problem is visible and nothing typed is lost. */
export function NumberControl({ slot, field, id, aria }: ControlProps) {
  const shown = slot.value === undefined ? "" : isNumber(slot.value) ? numberText(slot.value) : printable(slot.value);
  return (
    <input
      class="input number"
      id={id}
      type="text"
      inputMode={field.kind === "integer" ? "numeric" : "decimal"}
      autocomplete="off"
      spellcheck={false}
      value={shown}
      onInput={(event) => slot.onChange(readNumber(event.currentTarget.value))}
      {...aria}
    />
  );
}

function readNumber(text: string): Json | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  try {
    const value = parseJson(trimmed);
    return isNumber(value) ? value : text;
  } catch {
    return text;
  }
}

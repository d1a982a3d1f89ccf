import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../../components/Icon";
import { get, type Json } from "../../lib/json";
import { parseJson } from "../../lib/json-parse";
import { printJson } from "../../lib/json-print";
import { messageOf, sameProperty, type TreeModel } from "./model";
import { type Item, nameOf } from "./node";

/** Sets one property, or a new one where `name` is null. Text is taken as it is, JSON is read. */
export function PropertyForm({
  model,
  item,
  name,
  onDone,
}: {
  model: TreeModel;
  item: Item;
  name: string | null;
  onDone: () => void;
}) {
  // The node as it was when editing began: whatever comes in later must not be overwritten unseen.
  const [seen] = useState(item);
  const before = name === null ? undefined : get(seen.payload, name);
  const [key, setKey] = useState(name ?? "");
  const [kind, setKind] = useState<"text" | "json">(
    before === undefined || typeof before === "string" ? "text" : "json",
  );
  const [text, setText] = useState(
    before === undefined ? "" : typeof before === "string" ? before : printJson(before, 2),
  );
  const [problem, setProblem] = useState("");
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector<HTMLElement>("input:not([type=radio]), textarea")?.focus(), []);
  const save = async (): Promise<void> => {
    let value: Json;
    try {
      value = kind === "text" ? text : parseJson(text);
    } catch (error) {
      setProblem(`Not JSON: ${messageOf(error)}`);
      return;
    }
    onDone();
    await model.act({
      tool: "update_payload_property",
      args: { nodeId: seen.id, propertyName: key, newValue: value },
      title: `Set ${key} of ${nameOf(seen)}`,
      basis: { item: seen, still: sameProperty(key, seen) },
    });
  };
  const changed = name !== null && !sameProperty(name, seen)(item);
  const id = `property-${encodeURIComponent((name ?? "new").toWellFormed())}`;
  return (
    <form
      ref={form}
      class="property-form"
      data-testid="property-form"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        onDone();
      }}
    >
      {name === null && (
        <label class="filter">
          <span class="eyebrow">Name</span>
          <input class="input mono" required value={key} onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
      )}
      <fieldset class="segments">
        <legend class="visually-hidden">Value as</legend>
        {(["text", "json"] as const).map((one) => (
          <label key={one} class="segment">
            <input
              type="radio"
              name={id}
              checked={kind === one}
              onChange={() => {
                setKind(one);
                setProblem("");
              }}
            />
            <span>{one === "text" ? "Text" : "JSON"}</span>
          </label>
        ))}
      </fieldset>
      <textarea
        class="input area mono"
        rows={text.includes("\n") ? 6 : 1}
        aria-label={name === null ? "Value" : `Value of ${name}`}
        aria-invalid={problem !== "" ? "true" : undefined}
        aria-describedby={problem !== "" ? `${id}-problem` : undefined}
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && kind === "text") {
            event.preventDefault();
            void save();
          }
        }}
      />
      {problem !== "" && (
        <p class="field-problem" id={`${id}-problem`}>
          <Icon name="warning" size={14} />
          <span>{problem}</span>
        </p>
      )}
      {changed && (
        <p class="field-problem warn" role="alert" data-testid="changed-meanwhile">
          <Icon name="warning" size={14} />
          <span>It was changed while you were editing.</span>
        </p>
      )}
      <div class="actions">
        <button type="submit" class="button small primary" disabled={key === ""}>
          Save
        </button>
        <button type="button" class="button small" onClick={onDone}>
          Cancel
        </button>
      </div>
    </form>
  );
}

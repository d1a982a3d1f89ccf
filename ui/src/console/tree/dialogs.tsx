import { useEffect, useMemo, useState } from "preact/hooks";
import { Dialog } from "../../components/Dialog";
import { SchemaForm } from "../../components/form/SchemaForm";
import { Icon } from "../../components/Icon";
import { FormDraft } from "../../lib/draft";
import { plural } from "../../lib/format";
import { emptyObject, get, isObject, type JsonObject, objectOf, sameJson } from "../../lib/json";
import { parseJson } from "../../lib/json-parse";
import { printJson } from "../../lib/json-print";
import { text } from "../facts";
import { messageOf, samePayload, samePlace, type TreeModel } from "./model";
import { type Item, nameOf, ROOT } from "./node";

interface Props {
  model: TreeModel;
  item: Item;
  onClose: () => void;
}

/** A new child: a form where its type has a schema, else JSON. */
export function AddDialog({
  model,
  parent,
  onClose,
  onAdded,
}: {
  model: TreeModel;
  parent: Item;
  onClose: () => void;
  onAdded: (id: string) => void;
}) {
  const types = model.types.value;
  const [chosen, setType] = useState<string | null>(null);
  const type = chosen ?? likelyType(model, parent) ?? types.find((one) => one.name !== "Root")?.name ?? "";
  useEffect(() => void model.forest.open(parent.id), []);
  const schema = types.find((one) => one.name === type)?.schema ?? null;
  const draft = useMemo(() => (schema ? new FormDraft(schema) : null), [schema]);
  const [json, setJson] = useState('{\n  "name": ""\n}');
  const [problem, setProblem] = useState("");
  const add = async (): Promise<void> => {
    if (draft && !draft.submit()) return;
    let payload: JsonObject;
    try {
      payload = draft ? draft.value.peek() : objectFrom(json);
    } catch (error) {
      setProblem(messageOf(error));
      return;
    }
    onClose();
    const answer = await model.act({
      tool: "add_child",
      args: { parentNodeId: parent.id, payloadType: type, payloadProps: payload },
      title: `Add to ${nameOf(parent)}`,
      basis: { item: parent, still: () => true },
    });
    if (!answer) return;
    await model.forest.settle([text(answer, "nodeId")], true);
    await model.forest.open(parent.id);
    onAdded(text(answer, "nodeId"));
  };
  return (
    <Dialog
      title={`Add to ${nameOf(parent)}`}
      testId="add-dialog"
      onClose={onClose}
      footer={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form="add-form" class="button primary" disabled={type.trim() === ""}>
            Add
          </button>
        </>
      }
    >
      <form
        id="add-form"
        class="fields"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void add();
        }}
      >
        <label class="field">
          <span class="field-head">Type</span>
          <input
            class="input"
            data-autofocus
            list="payload-types"
            autocomplete="off"
            spellcheck={false}
            value={type}
            onInput={(event) => setType(event.currentTarget.value)}
          />
          <datalist id="payload-types">
            {types.map((one) => (
              <option key={one.name} value={one.name} />
            ))}
          </datalist>
        </label>
        {draft ? (
          <SchemaForm draft={draft} scope="add" />
        ) : (
          <JsonField label="Properties" text={json} problem={problem} onText={setJson} />
        )}
      </form>
    </Dialog>
  );
}

/** What the other children are is most likely what the next one is. */
function likelyType(model: TreeModel, parent: Item): string | undefined {
  model.forest.rows.value;
  const last = model.forest.get(parent.id)?.children?.at(-1);
  return last === undefined ? undefined : model.forest.get(last)?.type;
}

export function PayloadDialog({ model, item, onClose }: Props) {
  const [seen] = useState(item);
  const [json, setJson] = useState(() => printJson(seen.payload, 2));
  const [problem, setProblem] = useState("");
  const save = async (): Promise<void> => {
    let patch: JsonObject;
    try {
      patch = patchOf(seen.payload, objectFrom(json));
    } catch (error) {
      setProblem(messageOf(error));
      return;
    }
    onClose();
    if (Object.keys(patch).length === 0) return;
    await model.act({
      tool: "update_payload",
      args: { nodeId: seen.id, patch },
      title: `Change ${nameOf(seen)}`,
      basis: { item: seen, still: samePayload(seen) },
    });
  };
  return (
    <Dialog
      title={`Properties of ${nameOf(seen)}`}
      testId="payload-dialog"
      onClose={onClose}
      footer={
        <>
          <span class="quiet">Only what differs is sent.</span>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="button" class="button primary" onClick={() => void save()}>
            Save
          </button>
        </>
      }
    >
      <JsonField label="Properties as JSON" text={json} problem={problem} onText={setJson} />
    </Dialog>
  );
}

/** The properties that differ; leaving one out is refused, since a patch cannot take one away. */
export function patchOf(before: JsonObject, after: JsonObject): JsonObject {
  const gone = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
  if (gone.length > 0)
    throw new TypeError(`A property cannot be taken away, only set: ${gone.join(", ")}. Set it to null instead.`);
  return objectOf(
    Object.entries(after).filter(([key, value]) => {
      const old = get(before, key);
      return old === undefined || !sameJson(old, value);
    }),
  );
}

export function MoveDialog({ model, item, onClose }: Props) {
  const [target, setTarget] = useState("");
  const places = model.forest.rows.value.filter(
    (row) => row.more === null && row.id !== item.id && row.id !== item.parentId,
  );
  const words = target.toLowerCase();
  const shown = places
    .filter((row) => row.id.toLowerCase().includes(words) || model.forest.name(row.id).toLowerCase().includes(words))
    .slice(0, 50);
  const move = async (to: string): Promise<void> => {
    onClose();
    const answer = await model.act({
      tool: "move_node",
      args: { nodeId: item.id, newParentId: to },
      title: `Move ${nameOf(item)}`,
      basis: { item, still: samePlace(item) },
    });
    if (answer) await model.reveal(item.id);
  };
  return (
    <Dialog title={`Move ${nameOf(item)} below…`} testId="move-dialog" onClose={onClose}>
      <form
        class="field"
        onSubmit={(event) => {
          event.preventDefault();
          const exact = places.find((row) => row.id === target.trim());
          const only = exact ?? (shown.length === 1 ? shown[0] : undefined);
          if (only || target.trim() !== "") void move(only?.id ?? target.trim());
        }}
      >
        <label class="field">
          <span class="field-head">New parent: part of a name, or an id</span>
          <input
            class="input"
            data-autofocus
            autocomplete="off"
            spellcheck={false}
            value={target}
            onInput={(event) => setTarget(event.currentTarget.value)}
          />
        </label>
      </form>
      <ul class="entries boxed" aria-label="Nodes on screen">
        {shown.map((row) => (
          <li key={row.id}>
            <button
              type="button"
              class="entry"
              data-testid="move-target"
              data-node={row.id}
              onClick={() => void move(row.id)}
            >
              <span class="entry-head">
                <span class="entry-name">{row.id === ROOT ? "The top of the tree" : model.forest.name(row.id)}</span>
                <span class="tree-type">{model.forest.get(row.id)?.type}</span>
              </span>
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

export function RemoveDialog({ model, item, onClose, onRemoved }: Props & { onRemoved: () => void }) {
  const remove = async (): Promise<void> => {
    onClose();
    const answer = await model.act({
      tool: "remove_node",
      args: { nodeId: item.id },
      title: `Remove ${nameOf(item)}`,
      basis: { item, still: (now) => samePayload(item)(now) && now.count === item.count },
    });
    if (answer) onRemoved();
  };
  return (
    <Dialog
      title={`Remove ${nameOf(item)}?`}
      tone="danger"
      testId="remove-dialog"
      onClose={onClose}
      footer={
        <>
          <button type="button" class="button" data-autofocus onClick={onClose}>
            Keep it
          </button>
          <button type="button" class="button danger" onClick={() => void remove()}>
            Remove
          </button>
        </>
      }
    >
      <p>
        {item.count > 0
          ? `Its ${plural(item.count, "child", "children")} and everything below them go with it.`
          : "It has no children."}{" "}
        Undo brings it back.
      </p>
    </Dialog>
  );
}

function JsonField({
  label,
  text,
  problem,
  onText,
}: {
  label: string;
  text: string;
  problem: string;
  onText: (text: string) => void;
}) {
  return (
    <div class="field">
      <label class="field-head" for="json-field">
        {label}
      </label>
      <textarea
        id="json-field"
        class="input area mono raw-text"
        rows={10}
        spellcheck={false}
        value={text}
        aria-invalid={problem !== "" ? "true" : undefined}
        aria-describedby={problem !== "" ? "json-problem" : undefined}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      {problem !== "" && (
        <p class="field-problem" id="json-problem" role="alert">
          <Icon name="warning" size={14} />
          <span>{problem}</span>
        </p>
      )}
    </div>
  );
}

function objectFrom(json: string): JsonObject {
  const value = json.trim() === "" ? emptyObject() : parseJson(json);
  if (!isObject(value)) throw new TypeError("The properties must be one JSON object: { … }");
  return value;
}

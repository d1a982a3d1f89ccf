import { useEffect, useMemo, useState } from "preact/hooks";
import { Dialog } from "../../components/Dialog";
import { SchemaForm } from "../../components/form/SchemaForm";
import { Icon } from "../../components/Icon";
import { FormDraft } from "../../lib/draft";
import { ago, plural } from "../../lib/format";
import { emptyObject, get, isObject, type JsonObject, objectOf, sameJson } from "../../lib/json";
import { parseJson } from "../../lib/json-parse";
import { printJson } from "../../lib/json-print";
import { text } from "../facts";
import { type Hit, messageOf, type Question, samePayload, type TreeModel } from "./model";
import { canDrop, moveTo, namesOf, removeAll } from "./moves";
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

/** Where to put one node or several: nodes on screen at once, all others as soon as one types. */
export function MoveDialog({ model, ids, onClose }: { model: TreeModel; ids: string[]; onClose: () => void }) {
  const [target, setTarget] = useState("");
  const [found, setFound] = useState<Place[]>([]);
  const words = target.trim().toLowerCase();
  const near = model.forest.rows.value
    .filter((row) => row.more === null && canDrop(model, ids, row.id, "inside") && !isParent(model, ids, row.id))
    .map((row) => ({ id: row.id, name: model.forest.name(row.id), type: model.forest.get(row.id)?.type ?? "" }))
    .filter((place) => place.id.toLowerCase().includes(words) || place.name.toLowerCase().includes(words));
  useEffect(() => {
    if (words.length < 2 || !model.has("select_nodes")) return setFound([]);
    let here = true;
    const timer = setTimeout(() => {
      model
        .matching(words)
        .then((hits) => here && setFound(hits.filter((hit) => !hit.path.some((crumb) => ids.includes(crumb.id)))))
        .catch(() => here && setFound([]));
    }, 200);
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [words]);
  const known = new Set(near.map((place) => place.id));
  const shown = [...near, ...found.filter((hit) => !known.has(hit.id) && !isParent(model, ids, hit.id))].slice(0, 50);
  const move = async (to: string): Promise<void> => {
    onClose();
    await moveTo(model, ids, to, "inside");
    const [first] = ids;
    if (first !== undefined && ids.length === 1 && model.notice.peek() === null) await model.reveal(first);
  };
  return (
    <Dialog title={`Move ${namesOf(model, ids)} below…`} testId="move-dialog" onClose={onClose}>
      <form
        class="field"
        onSubmit={(event) => {
          event.preventDefault();
          const only = shown.find((place) => place.id === target.trim()) ?? (shown.length === 1 ? shown[0] : undefined);
          if (only) void move(only.id);
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
      <ul class="entries boxed" aria-label="Possible parents">
        {shown.map((place) => (
          <li key={place.id}>
            <button
              type="button"
              class="entry"
              data-testid="move-target"
              data-node={place.id}
              onClick={() => void move(place.id)}
            >
              <span class="entry-head">
                <span class="entry-name">{place.id === ROOT ? "The top of the tree" : place.name}</span>
                <span class="tree-type">{place.type}</span>
              </span>
            </button>
          </li>
        ))}
      </ul>
      {shown.length === 0 && <p class="quiet">No node matches.</p>}
    </Dialog>
  );
}

type Place = Pick<Hit, "id" | "name" | "type">;

/** Where all of them are already. */
function isParent(model: TreeModel, ids: string[], id: string): boolean {
  return ids.every((one) => model.forest.get(one)?.parentId === id);
}

export function RemoveDialog({
  model,
  ids,
  onClose,
  onRemoved,
}: {
  model: TreeModel;
  ids: string[];
  onClose: () => void;
  onRemoved: () => void;
}) {
  const items = ids.flatMap((id) => model.forest.get(id) ?? []);
  const below = items.reduce((sum, item) => sum + item.count, 0);
  const [item] = items;
  const remove = async (): Promise<void> => {
    onClose();
    if (!item) return;
    const done =
      items.length > 1
        ? await removeAll(model, ids)
        : await model.act({
            tool: "remove_node",
            args: { nodeId: item.id },
            title: `Remove ${nameOf(item)}`,
            basis: { item, still: (now) => samePayload(item)(now) && now.count === item.count },
          });
    if (done) onRemoved();
  };
  return (
    <Dialog
      title={`Remove ${namesOf(model, ids)}?`}
      tone="danger"
      testId="remove-dialog"
      onClose={onClose}
      footer={
        <>
          <button type="button" class="button" data-autofocus onClick={onClose}>
            {items.length > 1 ? "Keep them" : "Keep it"}
          </button>
          <button type="button" class="button danger" onClick={() => void remove()}>
            Remove
          </button>
        </>
      }
    >
      {items.length > 1 && (
        <ul class="plain-list">
          {items.slice(0, 10).map((one) => (
            <li key={one.id}>{nameOf(one)}</li>
          ))}
          {items.length > 10 && <li>and {items.length - 10} more</li>}
        </ul>
      )}
      <p>
        {below > 0
          ? `${items.length > 1 ? "Their" : "Its"} ${plural(below, "child", "children")} and everything below go with ${items.length > 1 ? "them" : "it"}.`
          : items.length > 1
            ? "They have no children."
            : "It has no children."}{" "}
        You can undo this.
      </p>
    </Dialog>
  );
}

const ASKED = {
  undo: { title: "Undo a change", last: "The last change is", made: "made by", yes: "Undo it", no: "Keep it" },
  redo: { title: "Redo a change", last: "The last undo took back", made: "undone by", yes: "Redo it", no: "Leave it" },
} as const;

/** Asks before somebody else's change is taken back, or what somebody else took back is done again. */
export function UndoDialog({ model, question }: { model: TreeModel; question: Question }) {
  const { step } = question;
  const words = ASKED[question.tool];
  const whose = question.tool === "undo" ? "that is not yours" : "that somebody else took back";
  const close = (): void => {
    model.question.value = null;
  };
  return (
    <Dialog
      title={`${words.title} ${step.by === null ? "that may not be yours" : whose}?`}
      tone="danger"
      testId="undo-dialog"
      onClose={close}
      footer={
        <>
          <button type="button" class="button" data-autofocus onClick={close}>
            {words.no}
          </button>
          <button type="button" class="button danger" onClick={() => void model.confirm()}>
            {words.yes}
          </button>
        </>
      }
    >
      <p>
        {words.last} <strong>{step.what}</strong>, {words.made} <strong>{step.by ?? "somebody unknown"}</strong>
        {step.at === null ? "" : `, ${ago(step.at, Date.now())}`}.
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

import { useEffect, useState } from "preact/hooks";
import { Dialog } from "../../components/Dialog";
import { Icon } from "../../components/Icon";
import { Callout, Empty } from "../../components/Notice";
import { Select } from "../../components/Select";
import { plural } from "../../lib/format";
import { isObject, type Json, type JsonObject, printable } from "../../lib/json";
import { list, objectOr, text } from "../facts";
import { exact } from "../moment";
import { messageOf, type Snapshot, type TreeModel } from "./model";
import { nameOf } from "./node";

const CURRENT = "current";
const KINDS = [
  ["added", "Added", "good"],
  ["removed", "Removed", "bad"],
  ["moved", "Moved", "info"],
  ["reordered", "Reordered", "info"],
  ["changed", "Changed", "warn"],
] as const;
const FIRST = 50;

/** States of the tree to keep, to compare and to go back to. */
export function Snapshots({ model, onChoose }: { model: TreeModel; onChoose: (id: string) => void }) {
  const snapshots = model.snapshots.value;
  const [restoring, setRestoring] = useState<Snapshot | null>(null);
  useEffect(() => void model.loadSnapshots(), [model]);
  return (
    <div class="stack" data-testid="snapshots">
      {model.has("snapshot_create") && <Create model={model} />}
      {snapshots?.length === 0 && (
        <Empty icon="camera" title="No snapshots yet">
          <p>A snapshot costs next to nothing; take one before something large.</p>
        </Empty>
      )}
      {snapshots && snapshots.length > 0 && (
        <>
          <ul class="lines">
            {[...snapshots].reverse().map((snapshot) => (
              <li key={snapshot.id} class="item" data-testid="snapshot" data-snapshot={snapshot.id}>
                <span class="item-what">
                  <strong>{snapshot.label || snapshot.id}</strong>
                  <span class="why quiet">
                    {snapshot.agent}, {exact(Date.parse(snapshot.createdAt))} · {plural(snapshot.nodes, "node")}
                  </span>
                </span>
                {model.has("snapshot_restore") && (
                  <button
                    type="button"
                    class="button small"
                    aria-label={`Restore ${snapshot.label || snapshot.id}`}
                    onClick={() => setRestoring(snapshot)}
                  >
                    <Icon name="restore" /> Restore
                  </button>
                )}
              </li>
            ))}
          </ul>
          {model.has("snapshot_diff") && <Compare model={model} snapshots={snapshots} onChoose={onChoose} />}
        </>
      )}
      {restoring && <Restore model={model} snapshot={restoring} onClose={() => setRestoring(null)} />}
    </div>
  );
}

function Create({ model }: { model: TreeModel }) {
  const [label, setLabel] = useState("");
  const create = async (): Promise<void> => {
    const answer = await model.act({
      tool: "snapshot_create",
      args: { label: label.trim() },
      title: "Take a snapshot",
    });
    if (!answer) return;
    setLabel("");
    await model.loadSnapshots();
  };
  return (
    <form
      class="inline-form"
      onSubmit={(event) => {
        event.preventDefault();
        void create();
      }}
    >
      <input
        class="input"
        aria-label="Label of the new snapshot"
        placeholder="Label, such as: before the move"
        maxLength={200}
        value={label}
        onInput={(event) => setLabel(event.currentTarget.value)}
      />
      <button type="submit" class="button" disabled={label.trim() === ""}>
        <Icon name="camera" /> Take
      </button>
    </form>
  );
}

function Restore({ model, snapshot, onClose }: { model: TreeModel; snapshot: Snapshot; onClose: () => void }) {
  const restore = async (): Promise<void> => {
    onClose();
    const answer = await model.act({
      tool: "snapshot_restore",
      args: { snapshotId: snapshot.id },
      title: `Restore ${snapshot.label}`,
    });
    if (answer) model.hear({ type: "gap" });
  };
  return (
    <Dialog
      title={`Restore ${snapshot.label}?`}
      tone="danger"
      testId="restore-dialog"
      onClose={onClose}
      footer={
        <>
          <button type="button" class="button" data-autofocus onClick={onClose}>
            Keep the tree
          </button>
          <button type="button" class="button danger" onClick={() => void restore()}>
            Restore
          </button>
        </>
      }
    >
      <p>
        The whole tree goes back to what it was at {exact(Date.parse(snapshot.createdAt))}, for every agent. Undo takes
        that back.
      </p>
    </Dialog>
  );
}

function Compare({
  model,
  snapshots,
  onChoose,
}: {
  model: TreeModel;
  snapshots: Snapshot[];
  onChoose: (id: string) => void;
}) {
  const [a, setA] = useState(snapshots.at(-1)?.id ?? CURRENT);
  const [b, setB] = useState(CURRENT);
  const [diff, setDiff] = useState<JsonObject | null>(null);
  const [problem, setProblem] = useState("");
  const options = [
    ...snapshots.map((one) => [one.id, one.label || one.id] as const),
    [CURRENT, "the tree now"] as const,
  ];
  const compare = async (): Promise<void> => {
    setProblem("");
    try {
      setDiff(await model.compare(a, b));
    } catch (error) {
      setDiff(null);
      setProblem(messageOf(error));
    }
  };
  return (
    <section aria-label="Compare" class="stack tight">
      <form
        class="inline-form"
        onSubmit={(event) => {
          event.preventDefault();
          void compare();
        }}
      >
        <Select label="From" value={a} options={options} onChange={setA} />
        <Select label="To" value={b} options={options} onChange={setB} />
        <button type="submit" class="button" data-testid="compare">
          <Icon name="compare" /> Compare
        </button>
      </form>
      {problem !== "" && <Callout tone="danger" title={problem} />}
      {diff && <DiffView diff={diff} model={model} onChoose={onChoose} />}
    </section>
  );
}

function DiffView({ diff, model, onChoose }: { diff: JsonObject; model: TreeModel; onChoose: (id: string) => void }) {
  const groups = KINDS.map(([kind, title, tone]) => ({ kind, title, tone, entries: list(diff, kind) })).filter(
    (group) => group.entries.length > 0,
  );
  if (groups.length === 0) {
    return (
      <p class="quiet" role="status" data-testid="no-difference">
        No difference.
      </p>
    );
  }
  return (
    <div class="stack tight" data-testid="difference">
      {groups.map(({ kind, title, tone, entries }) => (
        <section key={kind} aria-label={title}>
          <h4 class={`diff-title ${tone}`}>
            {title} <span class="chip-count">{entries.length}</span>
          </h4>
          <ul class="lines">
            {entries.slice(0, FIRST).map((entry, index) => (
              <DiffEntry key={index} entry={objectOr(entry)} kind={kind} model={model} onChoose={onChoose} />
            ))}
          </ul>
          {entries.length > FIRST && <p class="quiet small">and {entries.length - FIRST} more</p>}
        </section>
      ))}
    </div>
  );
}

function DiffEntry({
  entry,
  kind,
  model,
  onChoose,
}: {
  entry: JsonObject;
  kind: string;
  model: TreeModel;
  onChoose: (id: string) => void;
}) {
  const id = text(entry, "nodeId");
  const payload = objectOr(entry.payload);
  const name = Object.keys(payload).length > 0 ? nameOf({ id, payload }) : model.forest.name(id);
  return (
    <li class="item" data-testid="diff-entry" data-kind={kind} data-node={id}>
      <span class="item-what">
        {kind === "removed" ? (
          <span>{name}</span>
        ) : (
          <button type="button" class="link-button" onClick={() => onChoose(id)}>
            {name}
          </button>
        )}
        {kind === "moved" && (
          <span class="why quiet">
            from {model.forest.name(text(entry, "oldParentId"))} to {model.forest.name(text(entry, "newParentId"))}
          </span>
        )}
        {changesIn(entry).map(([key, before, after]) => (
          <span key={key} class="why">
            <code>{key}</code>: <del>{before}</del> <ins>{after}</ins>
          </span>
        ))}
      </span>
    </li>
  );
}

/** Old and new of everything that changed in a node. */
function changesIn(entry: JsonObject): [string, string, string][] {
  const pairs: [string, Json][] = [
    ...Object.entries(objectOr(entry.properties)),
    ...["payloadType", "tags"].flatMap((key): [string, Json][] => (isObject(entry[key]) ? [[key, entry[key]]] : [])),
  ];
  return pairs.map(([key, pair]) => {
    const { old, new: now } = objectOr(pair);
    return [key, shown(old), shown(now)];
  });
}

function shown(value: Json | undefined): string {
  if (value === undefined) return "–";
  return Array.isArray(value) ? value.map(printable).join(", ") || "none" : printable(value);
}

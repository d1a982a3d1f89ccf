import { useRef, useState } from "preact/hooks";
import { CopyButton } from "../../components/CopyButton";
import { Icon } from "../../components/Icon";
import { IconButton } from "../../components/IconButton";
import { Scalar } from "../../components/JsonScalar";
import { JsonTree } from "../../components/JsonTree";
import { Empty } from "../../components/Notice";
import { plural } from "../../lib/format";
import { isObject, type Json } from "../../lib/json";
import { printJson } from "../../lib/json-print";
import { AddDialog, MoveDialog, PayloadDialog, RemoveDialog } from "./dialogs";
import type { TreeModel } from "./model";
import { type Item, nameOf, ROOT } from "./node";
import { PropertyForm } from "./PropertyForm";
import { Tags } from "./Tags";

type Open = "add" | "move" | "remove" | "payload" | null;

/** Everything about the chosen node, and what can be done with it. */
export function NodePanel({
  model,
  onChoose,
  onGone,
}: {
  model: TreeModel;
  onChoose: (id: string) => void;
  onGone: () => void;
}) {
  const [open, setOpen] = useState<Open>(null);
  // Read so that the panel follows every new reading of the node.
  model.revision.value;
  model.forest.rows.value;
  const id = model.selected.value;
  const item = id === null ? undefined : model.forest.get(id);
  if (!item) {
    return (
      <Empty icon="tree" title="Pick a node">
        <p>Its properties, tags and what can be done with it show up here.</p>
      </Empty>
    );
  }
  const close = (): void => setOpen(null);
  const mark = model.marks.value.get(item.id);
  return (
    <div class="node-panel" data-testid="node" data-node={item.id} key={item.id}>
      <nav class="crumbs" aria-label="Way to the node">
        {model.crumbs.value.slice(0, -1).map((crumb) => (
          <button key={crumb.id} type="button" class="link-button" onClick={() => onChoose(crumb.id)}>
            {crumb.name}
          </button>
        ))}
      </nav>
      <header class="node-title">
        <h2>{nameOf(item)}</h2>
        <p class="quiet node-facts">
          <span class="tree-type">{item.type}</span>
          <code>{item.id}</code>
          <CopyButton compact label="Copy the id" text={() => item.id} />
          <span>{plural(item.count, "child", "children")}</span>
        </p>
        {mark && (
          <p class="tree-mark" role="status">
            just changed by {mark.by} with {mark.tool}
          </p>
        )}
      </header>
      <div class="actions wrap">
        {model.has("add_child") && <Action icon="plus" label="Add" onClick={() => setOpen("add")} />}
        {item.id !== ROOT && model.has("move_node") && (
          <Action icon="move" label="Move" onClick={() => setOpen("move")} />
        )}
        {item.id !== ROOT && model.has("remove_node") && (
          <Action icon="trash" label="Remove" onClick={() => setOpen("remove")} />
        )}
        {item.id !== ROOT && model.has("move_before") && model.has("move_after") && <Order model={model} item={item} />}
      </div>
      <Tags model={model} item={item} />
      <Properties model={model} item={item} onJson={model.has("update_payload") ? () => setOpen("payload") : null} />
      {open === "add" && <AddDialog model={model} parent={item} onClose={close} onAdded={onChoose} />}
      {open === "move" && <MoveDialog model={model} ids={[item.id]} onClose={close} />}
      {open === "remove" && <RemoveDialog model={model} ids={[item.id]} onClose={close} onRemoved={onGone} />}
      {open === "payload" && <PayloadDialog model={model} item={item} onClose={close} />}
    </div>
  );
}

function Action({ icon, label, onClick }: { icon: "plus" | "move" | "trash"; label: string; onClick: () => void }) {
  return (
    <button type="button" class="button small" data-testid={`node-${label.toLowerCase()}`} onClick={onClick}>
      <Icon name={icon} /> {label}
    </button>
  );
}

/** One place up or down among the siblings that are loaded. */
function Order({ model, item }: { model: TreeModel; item: Item }) {
  const siblings = (item.parentId !== null && model.forest.get(item.parentId)?.children) || [];
  const at = siblings.indexOf(item.id);
  const step = (tool: "move_before" | "move_after", sibling: string | undefined): void => {
    if (sibling === undefined) return;
    void model.act({
      tool,
      args: { nodeId: item.id, siblingId: sibling },
      title: `Move ${nameOf(item)}`,
      basis: { item, still: (now) => now.parentId === item.parentId },
    });
  };
  return (
    <>
      <IconButton icon="up" label="Move up" disabled={at <= 0} onClick={() => step("move_before", siblings[at - 1])} />
      <IconButton
        icon="down"
        label="Move down"
        disabled={at < 0 || at >= siblings.length - 1}
        onClick={() => step("move_after", siblings[at + 1])}
      />
    </>
  );
}

function Properties({ model, item, onJson }: { model: TreeModel; item: Item; onJson: (() => void) | null }) {
  const [editing, setEditing] = useState<string | null>(null);
  const [adding, setAdding] = useState(false);
  const entries = Object.entries(item.payload);
  const mayEdit = model.has("update_payload_property");
  const section = useRef<HTMLElement>(null);
  // Focus goes back to the button that opened the form.
  const done = (opener: string): void => {
    setEditing(null);
    setAdding(false);
    requestAnimationFrame(() =>
      [...(section.current?.querySelectorAll<HTMLElement>("[data-opens]") ?? [])]
        .find((button) => button.dataset.opens === opener)
        ?.focus(),
    );
  };
  return (
    <section ref={section} aria-label="Properties">
      <div class="section-head">
        <h3>Properties</h3>
        <span class="actions">
          {mayEdit && (
            <button
              type="button"
              class="button small ghost"
              data-testid="add-property"
              data-opens=""
              onClick={() => setAdding(true)}
            >
              <Icon name="plus" /> Property
            </button>
          )}
          {onJson && (
            <button type="button" class="button small ghost" data-testid="edit-json" onClick={onJson}>
              <Icon name="edit" /> JSON
            </button>
          )}
          <CopyButton compact label="Copy the properties" text={() => printJson(item.payload, 2)} />
        </span>
      </div>
      {entries.length === 0 && !adding && <p class="quiet">No properties.</p>}
      <dl class="properties" data-testid="properties">
        {entries.map(([key, value]) => (
          <div key={key} class="property">
            <dt>{key}</dt>
            {editing === key ? (
              <dd class="wide">
                <PropertyForm model={model} item={item} name={key} onDone={() => done(key)} />
              </dd>
            ) : (
              <>
                <dd data-testid="property-value" data-property={key}>
                  <Value value={value} label={key} />
                </dd>
                {mayEdit && (
                  <dd>
                    <IconButton
                      icon="edit"
                      size={14}
                      opens={key}
                      label={`Edit ${key}`}
                      onClick={() => setEditing(key)}
                    />
                  </dd>
                )}
              </>
            )}
          </div>
        ))}
      </dl>
      {adding && <PropertyForm model={model} item={item} name={null} onDone={() => done("")} />}
    </section>
  );
}

function Value({ value, label }: { value: Json; label: string }) {
  const full = (Array.isArray(value) && value.length > 0) || (isObject(value) && Object.keys(value).length > 0);
  return full ? <JsonTree value={value} label={label} /> : <Scalar value={value} bare />;
}

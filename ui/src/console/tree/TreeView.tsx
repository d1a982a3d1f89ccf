import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../../components/Icon";
import { Callout, Empty } from "../../components/Notice";
import { Select } from "../../components/Select";
import { Tabs } from "../../components/Tabs";
import { useNow } from "../../components/useNow";
import { ago } from "../../lib/format";
import type { AgentSummary } from "../facts";
import { useConsole } from "../model";
import { hashOf } from "../route";
import { ViewHead } from "../ViewHead";
import { Changes } from "./Changes";
import { AddDialog, UndoDialog } from "./dialogs";
import { messageOf, type TreeModel } from "./model";
import { NodeHistory } from "./NodeHistory";
import { NodePanel } from "./NodePanel";
import { NoticeBar } from "./NoticeBar";
import { Hits, SearchBar } from "./Search";
import { Snapshots } from "./Snapshots";
import { TreeList } from "./TreeList";

/** The workspace, looked at and changed as one of the agents. */
export function TreeView() {
  const console = useConsole();
  const agents = console.project.value?.agents ?? [];
  const { subject, detail } = console.route.value;
  const agent = subject ?? likeliest(agents);
  const [model, setModel] = useState<TreeModel | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (agent === null) return;
    let here = true;
    let entered: TreeModel | null = null;
    setProblem("");
    console
      .tree(agent)
      .then((tree) => {
        if (!here) return;
        entered = tree;
        setModel(tree);
        void tree.enter();
      })
      .catch((error) => here && setProblem(messageOf(error)));
    return () => {
      here = false;
      entered?.leave();
      setModel(null);
    };
  }, [agent]);
  if (agent === null) return <Empty icon="agents" title="This project has no agents" />;
  return (
    <div class="tree-view">
      <ViewHead title="Tree">The workspace that your agents share. You see and change it as one of them.</ViewHead>
      {problem !== "" && <Callout tone="danger" title={problem} />}
      {model ? (
        <Workspace key={agent} model={model} agent={agent} agents={agents} wanted={detail} />
      ) : (
        problem === "" && <p class="loading">Loading…</p>
      )}
    </div>
  );
}

/** Someone who can change things shows most. */
export function likeliest(agents: AgentSummary[]): string | null {
  const writers = agents.filter((agent) => agent.role === "editor" && !agent.readOnly);
  const most = [...(writers.length > 0 ? writers : agents)].sort((a, b) => b.tools - a.tools);
  return most[0]?.name ?? null;
}

/** The same width as in tree.css. */
const NARROW = "(max-width: 800px)";

type Side = "node" | "history" | "snapshots" | "changes";

function Workspace({
  model,
  agent,
  agents,
  wanted,
}: {
  model: TreeModel;
  agent: string;
  agents: AgentSummary[];
  wanted: string | null;
}) {
  const console = useConsole();
  const [side, setSide] = useState<Side>("node");
  const [adding, setAdding] = useState<string | null>(null);
  const loaded = model.loaded.value;
  const selected = model.selected.value;
  const chosen = selected === null ? undefined : model.forest.get(selected);
  const added = adding === null ? undefined : model.forest.get(adding);
  const panel = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (loaded && wanted !== null && wanted !== model.selected.peek()) void model.reveal(wanted);
  }, [loaded, wanted]);
  // A node that is gone must not stay in the address.
  const last = useRef(selected);
  useEffect(() => {
    if (selected === null && last.current !== null && last.current === console.route.peek().detail)
      console.go(hashOf("tree", agent));
    // On a phone tree and node are two screens, and focus goes along.
    if (selected !== last.current && matchMedia(NARROW).matches)
      (selected === null ? document.querySelector<HTMLElement>("[role=tree]") : panel.current)?.focus();
    last.current = selected;
  }, [selected]);
  const show = (id: string): void => {
    setSide("node");
    if (console.route.peek().detail === id) void model.select(id);
    else console.go(hashOf("tree", agent, id));
  };
  if (model.problem.value !== "") {
    return (
      <>
        <div class="tree-tools">
          <AgentPicker agent={agent} agents={agents} />
        </div>
        <Empty icon="tree" title="The tree cannot be shown" testId="tree-problem">
          <p role="alert">{model.problem.value}</p>
          <button type="button" class="button" onClick={() => void model.enter()}>
            Retry
          </button>
        </Empty>
      </>
    );
  }
  return (
    <>
      <div class="tree-tools">
        <AgentPicker agent={agent} agents={agents} />
        {model.has("select_nodes") && <SearchBar model={model} />}
        <div class="tree-actions">
          {model.has("snapshot_list") && (
            <button type="button" class="button narrow-only" onClick={() => setSide("snapshots")}>
              <Icon name="camera" />
              <span class="visually-hidden">Snapshots</span>
            </button>
          )}
          <UndoButton model={model} />
          <button
            type="button"
            class="button"
            data-testid="redo"
            disabled={!model.has("redo")}
            onClick={() => void model.redo()}
          >
            <Icon name="redo" /> <span class="word">Redo</span>
          </button>
        </div>
      </div>
      <NoticeBar model={model} />
      <p class="visually-hidden" role="status">
        {model.busy.value}
      </p>
      <div class={`tree-split ${selected !== null || side !== "node" ? "at-panel" : ""}`}>
        <div class="card tree-card">
          {model.search.value.state === "idle" ? (
            <TreeList model={model} onChoose={show} onAdd={setAdding} />
          ) : (
            <Hits model={model} onChoose={show} />
          )}
        </div>
        <div class="card tree-panel" ref={panel} tabIndex={-1} aria-label="The chosen node" role="region">
          <button
            type="button"
            class="back"
            onClick={() => {
              setSide("node");
              void model.select(null);
              console.go(hashOf("tree", agent));
            }}
          >
            <Icon name="back" /> Tree
          </button>
          <div class="card-body">
            <Tabs
              label="About the tree"
              look="pill"
              current={side}
              onSelect={setSide}
              tabs={[
                { name: "node", label: "Node" },
                ...(model.has("node_history") && selected !== null
                  ? [{ name: "history" as const, label: "History" }]
                  : []),
                ...(model.has("snapshot_list") ? [{ name: "snapshots" as const, label: "Snapshots" }] : []),
                {
                  name: "changes",
                  label: "Changes",
                  ...(model.changes.value.length > 0 ? { note: String(model.changes.value.length) } : {}),
                },
              ]}
            >
              {side === "node" && (
                <NodePanel model={model} onChoose={show} onGone={() => console.go(hashOf("tree", agent))} />
              )}
              {side === "history" && chosen && <NodeHistory model={model} item={chosen} />}
              {side === "history" && !chosen && <Empty icon="clock" title="Pick a node to see its history" />}
              {side === "snapshots" && <Snapshots model={model} onChoose={show} />}
              {side === "changes" && <Changes model={model} onChoose={show} />}
            </Tabs>
          </div>
        </div>
      </div>
      {model.question.value && <UndoDialog model={model} question={model.question.value} />}
      {added && <AddDialog model={model} parent={added} onClose={() => setAdding(null)} onAdded={show} />}
    </>
  );
}

/** How long ago, to the second while it is fresh. */
function soon(at: number, now: number): string {
  const seconds = Math.max(0, Math.round((Math.max(now, at) - at) / 1_000));
  return seconds < 60 ? `${seconds} s ago` : ago(at, now);
}

/** Undo, which says what it would take back and whose that is. */
function UndoButton({ model }: { model: TreeModel }) {
  const now = useNow();
  const step = model.next.value;
  const said = step
    ? `Undo: ${step.what}, by ${step.by ?? "somebody unknown"}${step.at === null ? "" : `, ${soon(step.at, now)}`}`
    : "Undo the last change";
  const look = (): void => {
    if (model.has("undo") && model.next.peek() === null) void model.lookAhead();
  };
  return (
    <button
      type="button"
      class="button"
      data-testid="undo"
      title={said}
      disabled={!model.has("undo")}
      onPointerEnter={look}
      onFocus={look}
      onClick={() => void model.undo()}
    >
      <Icon name="undo" /> <span class="word">Undo</span>
      {step && <span class="visually-hidden">{said.slice("Undo".length)}</span>}
    </button>
  );
}

function AgentPicker({ agent, agents }: { agent: string; agents: AgentSummary[] }) {
  const console = useConsole();
  return (
    <Select
      label="As agent"
      value={agent}
      options={agents.map((one) => [one.name, one.name] as const)}
      onChange={(name) => console.go(hashOf("tree", name))}
    />
  );
}

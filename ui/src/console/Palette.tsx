import { useEffect, useMemo, useState } from "preact/hooks";
import { Dialog } from "../components/Dialog";
import { Icon, type IconName } from "../components/Icon";
import { find } from "../lib/search";
import { useConsole } from "./model";
import { TITLES } from "./Nav";
import { hashOf, viewsOf } from "./route";
import { likeliest } from "./tree/TreeView";

const MOST = 40;
/** Types and linters know the role only beside a `list`. */
const COMBOBOX: object = { role: "combobox" };

interface Thing {
  name: string;
  description: string;
  tags: string[];
  kind: string;
  icon: IconName;
  run: () => void;
}

/** Finds everything by name: views, agents, tools, sources, nodes, calls, approvals, and things to do. */
export function Palette({ onClose }: { onClose: () => void }) {
  const console = useConsole();
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const [tools, setTools] = useState<Thing[]>([]);
  const [nodes, setNodes] = useState<Thing[]>([]);
  const project = console.project.value;
  const go = (hash: string) => (): void => console.go(hash);
  useEffect(() => {
    console.api
      .pool()
      .then((found) =>
        setTools(
          found.map(({ name, source, description }) =>
            thing(
              "tool",
              "flask",
              name,
              `of ${source}. ${description.slice(0, 120)}`,
              go(hashOf("sources", source, name)),
            ),
          ),
        ),
      )
      .catch(() => undefined);
  }, []);
  const agent = likeliest(project?.agents ?? []);
  useEffect(() => {
    if (agent === null || project?.tree === false || query.trim().length < 2) return setNodes([]);
    let here = true;
    const timer = setTimeout(() => {
      console
        .tree(agent)
        .then((tree) => (tree.has("select_nodes") ? tree.matching(query.trim()) : []))
        .then(
          (hits) =>
            here &&
            setNodes(
              hits.slice(0, 10).map((hit) =>
                thing(
                  "node",
                  "tree",
                  hit.name,
                  hit.path
                    .slice(0, -1)
                    .map((crumb) => crumb.name)
                    .join(" / "),
                  go(hashOf("tree", agent, hit.id)),
                ),
              ),
            ),
        )
        .catch(() => here && setNodes([]));
    }, 200);
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [query, agent]);
  const known = useMemo(
    (): Thing[] => [
      ...viewsOf(project).map((view) => thing("view", "overview", TITLES[view], "", go(hashOf(view)))),
      ...(project?.agents ?? []).flatMap((one) => [
        thing("agent", "agents", one.name, one.description, go(hashOf("agents", one.name))),
        thing("action", "flask", `Playground as ${one.name}`, "Run a tool as this agent", go(hashOf("try", one.name))),
      ]),
      ...(project?.sources ?? []).map((one) =>
        thing("source", "plug", one.name, one.problem, go(hashOf("sources", one.name))),
      ),
      ...(console.approvals.value ?? [])
        .filter((one) => one.state === "pending")
        .map((one) =>
          thing(
            "approval",
            "inbox",
            `${one.agent} wants ${one.tool}`,
            "waits for you",
            go(hashOf("approvals", one.id)),
          ),
        ),
      ...console.calls.value
        .slice(0, 30)
        .map((one) =>
          thing("call", "log", `${one.tool} by ${one.agent}`, one.message || "succeeded", go(callHash(one.callId))),
        ),
      thing("action", "keyboard", "Keyboard help", "", () => (console.helping.value = true)),
      thing("action", "info", "Explain this page", "", () => (console.explaining.value = true)),
      thing("action", "shield", "Check the audit log", "Whether a record was changed", go(hashOf("audit"))),
      ...(console.session.token.value === null
        ? []
        : [thing("action", "out", "Sign out", "", () => console.signOut())]),
    ],
    [project, console.approvals.value],
  );
  const found = find([...known, ...tools], query, new Set()).map((hit) => hit.item);
  const shown = [...(query === "" ? found.filter((one) => one.kind !== "tool") : found), ...nodes].slice(0, MOST);
  const chosen = Math.min(at, shown.length - 1);
  const take = (one: Thing | undefined): void => {
    if (!one) return;
    onClose();
    one.run();
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") setAt((chosen + 1) % Math.max(1, shown.length));
    else if (event.key === "ArrowUp") setAt((chosen + shown.length - 1) % Math.max(1, shown.length));
    else if (event.key === "Enter") take(shown[chosen]);
    else return;
    event.preventDefault();
  };
  useEffect(() => document.getElementById(`found-${chosen}`)?.scrollIntoView({ block: "nearest" }), [chosen]);
  return (
    <Dialog title="Find anything" testId="palette" onClose={onClose}>
      <input
        class="input palette-field"
        data-autofocus
        data-testid="palette-field"
        type="text"
        {...COMBOBOX}
        aria-label="Find anything"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={shown[chosen] ? `found-${chosen}` : undefined}
        placeholder="A view, agent, tool, source, node, call or action"
        autocomplete="off"
        spellcheck={false}
        value={query}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={keys}
      />
      <div class="palette-list" id="palette-list" role="listbox" aria-label="Found">
        {shown.map((one, index) => (
          <div
            key={`${one.kind} ${one.name} ${index}`}
            id={`found-${index}`}
            role="option"
            aria-selected={index === chosen}
            data-testid="found"
            data-kind={one.kind}
            onClick={() => take(one)}
          >
            <Icon name={one.icon} />
            <span class="found-name">{one.name}</span>
            <span class="quiet clamp">{one.description}</span>
            <span class="found-kind">{one.kind}</span>
          </div>
        ))}
      </div>
      {shown.length === 0 && <p class="quiet palette-none">Nothing has that name.</p>}
    </Dialog>
  );
}

function thing(kind: string, icon: IconName, name: string, description: string, run: () => void): Thing {
  return { kind, icon, name, description, tags: [kind], run };
}

/** Where a call is shown. */
function callHash(id: string): string {
  return hashOf("calls", id);
}

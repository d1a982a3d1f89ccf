import { useEffect, useMemo, useState } from "preact/hooks";
import { Dialog } from "../components/Dialog";
import { Icon, type IconName } from "../components/Icon";
import { find } from "../lib/search";
import { useContents } from "./contents";
import { useConsole } from "./model";
import { ICONS, TITLES } from "./Nav";
import { actorOf } from "./news";
import { auditHash, hashOf, viewsOf } from "./route";
import { likeliest } from "./tree/TreeView";

const MOST = 40;
/** Shown only once something is typed: there are too many. */
const QUIET = new Set(["tool", "docs", "call", "run"]);
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

/** Finds everything by name: pages, agents, tools, sources, nodes, runs, calls, approvals, documentation, things to do. */
export function Palette({ onClose }: { onClose: () => void }) {
  const console = useConsole();
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const [asked, setAsked] = useState<Thing[]>([]);
  const [nodes, setNodes] = useState<Thing[]>([]);
  const contents = useContents();
  const project = console.project.value;
  const go = (hash: string) => (): void => console.go(hash);
  useEffect(() => {
    const add = (found: Promise<Thing[]>): void =>
      void found.then((things) => setAsked((before) => [...before, ...things])).catch(() => undefined);
    add(
      console.api
        .sources()
        .then((all) =>
          all.map((one) =>
            thing("source", "plug", one.name, one.problem || one.where, go(hashOf("sources", one.name))),
          ),
        ),
    );
    add(
      console.api
        .pool()
        .then((all) =>
          all.map(({ name, source, description }) =>
            thing(
              "tool",
              "flask",
              name,
              `${source}: ${description.slice(0, 120)}`,
              go(hashOf("sources", source, name)),
            ),
          ),
        ),
    );
    add(
      console.api
        .runs()
        .then((all) =>
          all.map((one) => thing("run", "play", `Run of ${one.agent}`, one.id, go(hashOf("runs", one.id)))),
        ),
    );
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
              hits.slice(0, 12).map((hit) =>
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
      ...viewsOf(project).map((view) => thing("page", ICONS[view], TITLES[view], "", go(hashOf(view)))),
      ...(console.approvals.value ?? []).map((one) =>
        thing(
          "approval",
          "inbox",
          `${actorOf(one)} wants ${one.tool}`,
          one.state === "pending" ? "waits for you" : one.state,
          go(hashOf("approvals", one.id)),
        ),
      ),
      ...(project?.agents ?? []).flatMap((one) => [
        thing("agent", "agents", one.name, one.description, go(hashOf("agents", one.name))),
        thing("action", "flask", `Playground as ${one.name}`, "Run a tool as this agent", go(hashOf("try", one.name))),
      ]),
      ...console.calls.value
        .slice(0, 30)
        .map((one) =>
          thing("call", "log", `${one.tool} by ${one.agent}`, one.message || one.outcome, go(callHash(one.callId))),
        ),
      thing("action", "keyboard", "Keyboard help", "", () => (console.helping.value = true)),
      thing("action", "info", "What the words on this page mean", "", () => (console.explaining.value = true)),
      thing("action", "shield", "Check the audit log", "Whether a record was changed", go(hashOf("audit"))),
      ...(["light", "dark", "system"] as const).map((theme) =>
        thing("action", "sun", `Use the ${theme} theme`, "", () => (console.settings.theme.value = theme)),
      ),
      ...(console.session.token.value === null
        ? []
        : [thing("action", "out", "Sign out", "", () => console.signOut())]),
      ...contents.map((one) => thing("docs", "book", one.title, one.part, go(hashOf("docs", one.name)))),
    ],
    [project, console.approvals.value, contents],
  );
  const words = query.trim();
  const found = best([...known, ...asked, ...nodes], words);
  const shown = [
    ...(words === "" ? found.filter((one) => !QUIET.has(one.kind)) : found),
    ...nodes.filter((one) => !found.includes(one)),
  ].slice(0, MOST);
  if (words !== "")
    shown.push(
      thing("search", "log", `Search the audit log for “${words}”`, "", () => console.go(auditHash({ text: words }))),
    );
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
        placeholder="A page, agent, tool, source, node, call or action"
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
    </Dialog>
  );
}

/** What has every word in its name or description; only if nothing has, names that hold the letters in that order. */
function best(things: Thing[], query: string): Thing[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const plain = things.filter((one) => {
    const said = `${one.name} ${one.description}`.toLowerCase();
    return words.every((word) => said.includes(word));
  });
  return find(plain.length > 0 ? plain : things, query, new Set()).map((hit) => hit.item);
}

function thing(kind: string, icon: IconName, name: string, description: string, run: () => void): Thing {
  return { kind, icon, name, description, tags: [kind], run };
}

/** Where a call is shown. */
function callHash(id: string): string {
  return hashOf("calls", id);
}

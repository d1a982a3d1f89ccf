import { useEffect, useState } from "preact/hooks";
import { Badge, type Tone } from "../components/Badge";
import { Card } from "../components/Card";
import { ContextMenu } from "../components/ContextMenu";
import { CopyButton } from "../components/CopyButton";
import { Dialog } from "../components/Dialog";
import { Icon } from "../components/Icon";
import { JsonTree } from "../components/JsonTree";
import { Callout, Empty } from "../components/Notice";
import { Tabs } from "../components/Tabs";
import { ToolName } from "../components/ToolName";
import { plural } from "../lib/format";
import { AccessDialog, type Wish, wantsFor } from "./AccessDialog";
import { Definitions } from "./Definitions";
import { useConsole, useNews } from "./model";
import { exact } from "./moment";
import { auditHash, hashOf } from "./route";
import type { Figures, SourceStatus, SourceTool, SourceView } from "./sources";
import { DocsLink, ViewHead } from "./ViewHead";
import { MEANINGS, standingWord, toneOf } from "./verdicts";

const KINDS: Record<string, string> = {
  mcp: "MCP server",
  http: "HTTP API",
  extension: "Python modules",
  builtin: "built in",
};
const ABOUT: Record<string, string> = {
  mcp: "An MCP server. Agents get the tools that you accepted, in the definition that you accepted.",
  http: "An HTTP API. Each operation is a tool; the gateway sends the requests.",
  extension: "Python code of this project. Each module or function is a tool.",
  builtin: "Part of the gateway itself. There is nothing to start.",
};
const STATES: Record<string, { tone: Tone; meaning: string }> = {
  up: { tone: "good", meaning: "It answers" },
  down: { tone: "danger", meaning: "It does not answer; its tools are unavailable" },
  disabled: { tone: "neutral", meaning: "The project file switches it off" },
};

/** Where tools come from: servers and APIs, how they stand, what they offer and to whom. */
export function Sources() {
  const { subject, detail } = useConsole().route.value;
  return subject === null ? <Index /> : <OneSource key={subject} name={subject} wanted={detail} />;
}

/** Loads something now and whenever the tools may have changed. */
function useFresh<T>(load: () => Promise<T>, inputs: unknown[]): [T | null, string, () => void] {
  const [found, setFound] = useState<T | null>(null);
  const [problem, setProblem] = useState("");
  const again = (): void => {
    load()
      .then((next) => {
        setFound(next);
        setProblem("");
      })
      .catch((error: Error) => setProblem(error.message));
  };
  useEffect(again, inputs);
  useNews((news) => {
    if (news.type === "pool" || news.type === "begun") again();
  }, inputs);
  return [found, problem, again];
}

function Index() {
  const console = useConsole();
  const [sources, problem] = useFresh(() => console.api.sources(), []);
  return (
    <div class="view">
      <ViewHead title="Sources">Where your agents' tools come from, and whether each source works.</ViewHead>
      {problem !== "" && <Callout tone="danger" title={problem} />}
      <Definitions />
      {sources === null ? (
        problem === "" && <p class="loading">Loading…</p>
      ) : (
        <Card title={plural(sources.length, "source")} testId="sources">
          <div class="table-wrap">
            <table class="table lean">
              <thead>
                <tr>
                  <th scope="col">Source</th>
                  <th scope="col">State</th>
                  <th scope="col">What it is</th>
                  <th scope="col" class="number">
                    Tools
                  </th>
                  <FigureHeads />
                </tr>
              </thead>
              <tbody>
                {sources.map((source) => (
                  <tr key={source.name} data-testid="source-row" data-source={source.name}>
                    <th scope="row" data-label="Source">
                      <a href={hashOf("sources", source.name)}>{source.name}</a>
                      {source.waiting > 0 && (
                        <span class="count" title="Definitions to review">
                          {source.waiting}
                          <span class="visually-hidden"> to review</span>
                        </span>
                      )}
                    </th>
                    <td data-label="State">
                      <StateBadge source={source} />
                      {source.problem !== "" && <span class="why">{source.problem}</span>}
                    </td>
                    <td data-label="What it is" class="source-what">
                      {KINDS[source.kind] ?? source.kind}
                      {source.where !== "" && <code class="why quiet">{source.where}</code>}
                    </td>
                    <td data-label="Tools" class="number" data-unit={source.tools === 1 ? "tool" : "tools"}>
                      {source.tools}
                    </td>
                    <FigureCells figures={source.figures} />
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Card>
      )}
    </div>
  );
}

function StateBadge({ source }: { source: SourceStatus }) {
  const known = STATES[source.state];
  return <Badge text={source.state} tone={known?.tone ?? "neutral"} meaning={known?.meaning ?? ""} />;
}

function FigureHeads() {
  return (
    <>
      <th scope="col" class="number" title="Since the gateway started">
        Calls
      </th>
      <th scope="col" class="number" title="Calls that ran and failed">
        Failed
      </th>
      <th scope="col" class="number" title="Half of the latest calls took less">
        Typical
      </th>
      <th scope="col" class="number" title="19 of 20 of the latest calls took less">
        Slow
      </th>
    </>
  );
}

/** The figures of a tool lead to its calls. */
function FigureCells({ figures, tool }: { figures: Figures; tool?: string }) {
  const linked = (count: number, filter: Record<string, string>) =>
    tool === undefined || count === 0 ? (
      count.toLocaleString("en")
    ) : (
      <a href={auditHash({ kind: "call", toolPart: tool, ...filter })}>{count.toLocaleString("en")}</a>
    );
  return (
    <>
      <td data-label="Calls" class="number" data-unit={figures.calls === 1 ? "call" : "calls"}>
        {linked(figures.calls, {})}
      </td>
      <td
        data-label="Failed"
        class={`number ${figures.failures > 0 ? "failed" : ""}`}
        data-unit="failed"
        data-empty={figures.failures === 0 ? "true" : undefined}
      >
        {linked(figures.failures, { outcome: "failure" })}
      </td>
      <td
        data-label="Typical"
        class="number"
        data-unit="typically"
        data-empty={figures.medianMs === null ? "true" : undefined}
      >
        {figures.medianMs === null ? "–" : ms(figures.medianMs)}
      </td>
      <td
        data-label="Slow"
        class="number"
        data-unit="at worst"
        data-empty={figures.slowMs === null ? "true" : undefined}
      >
        {figures.slowMs === null ? "–" : ms(figures.slowMs)}
      </td>
    </>
  );
}

function ms(value: number): string {
  return value >= 1_000 ? `${(value / 1_000).toFixed(1)} s` : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

type Part = "tools" | "matrix";

function OneSource({ name, wanted }: { name: string; wanted: string | null }) {
  const console = useConsole();
  const [view, problem, again] = useFresh(() => console.api.source(name), [name]);
  const [part, setPart] = useState<Part>("tools");
  return (
    <div class="view" data-testid="source-screen" data-source={name}>
      <a class="link-button back-link" href={hashOf("sources")}>
        <Icon name="back" size={14} /> All sources
      </a>
      {problem !== "" && <Callout tone="danger" title={problem} />}
      {view && (
        <>
          <SourceHead view={view} onChanged={again} />
          <Definitions server={name} />
          <Card title={plural(view.tools.length, "tool")}>
            <div class="card-body">
              <Tabs
                label="What to show"
                look="pill"
                current={part}
                onSelect={setPart}
                tabs={[
                  { name: "tools", label: "Tools" },
                  { name: "matrix", label: "Who has what" },
                ]}
              >
                {view.tools.length === 0 ? (
                  <Empty icon="plug" title="No tools">
                    <p>They show up here as soon as the source offers some.</p>
                  </Empty>
                ) : part === "tools" ? (
                  <Tools view={view} />
                ) : (
                  <Matrix view={view} />
                )}
              </Tabs>
            </div>
          </Card>
          <Wanted view={view} name={wanted} />
        </>
      )}
      {view === null && problem === "" && <p class="loading">Loading…</p>}
    </div>
  );
}

function SourceHead({ view: { source }, onChanged }: { view: SourceView; onChanged: () => void }) {
  const console = useConsole();
  const [busy, setBusy] = useState(false);
  const restart = async (): Promise<void> => {
    setBusy(true);
    try {
      await console.api.restart(source.name);
      console.say(`${source.name} was started again`);
    } catch (error) {
      console.say(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
    onChanged();
  };
  return (
    <>
      <header class="agent-head">
        <div>
          <h1>{source.name}</h1>
          <p class="source-facts">
            <StateBadge source={source} />{" "}
            <span class="quiet">
              {ABOUT[source.kind] ?? ""} <DocsLink page="pool" />
            </span>
          </p>
        </div>
        <div class="actions">
          {source.restarts && (
            <button
              type="button"
              class="button small"
              aria-disabled={busy ? "true" : undefined}
              title={source.kind === "mcp" ? "Calls under way to it fail" : "Read again what it offers"}
              data-testid="restart"
              onClick={() => void (busy || restart())}
            >
              <Icon name="restore" /> {source.kind === "mcp" ? "Restart" : "Read again"}
            </button>
          )}
          {source.takesLogin && (
            <button
              type="button"
              class="button small"
              onClick={() =>
                void console.api
                  .beginLogin(source.name)
                  .then((given) => {
                    const address = new URL(given);
                    if (!/^https?:$/.test(address.protocol)) throw new Error("That is no address.");
                    location.assign(address);
                  })
                  .catch((error: Error) => console.say(error.message))
              }
            >
              <Icon name="plug" /> Log in
            </button>
          )}
          <a class="button small" href={hashOf("audit")}>
            <Icon name="log" /> Audit
          </a>
        </div>
      </header>
      {source.problem !== "" && (
        <Callout tone="danger" title={`It is down: ${source.problem}`} testId="source-problem">
          {source.lastWords.length === 0 && <p>It left no error output.</p>}
        </Callout>
      )}
      {source.notice !== "" && <Callout tone="warning" title={source.notice} />}
      <div class="source-columns">
        {source.where !== "" && (
          <Card title={source.kind === "mcp" && !/^https?:/.test(source.where) ? "Command" : "Address"}>
            <div class="card-body">
              <p class="address">
                <code data-testid="where">{source.where}</code>
                <CopyButton compact label="Copy" text={() => source.where} />
              </p>
              {source.instructions !== "" && (
                <details class="messages">
                  <summary>How the server says it wants to be used</summary>
                  <p class="quiet small">No agent is told this. Judge it yourself.</p>
                  <p class="pre">{source.instructions}</p>
                </details>
              )}
            </div>
          </Card>
        )}
        {source.lastWords.length > 0 && (
          <Card title="Latest error output" testId="last-words">
            <pre class="code" tabIndex={0} role="region" aria-label={`Error output of ${source.name}`}>
              {source.lastWords.join("\n")}
            </pre>
          </Card>
        )}
      </div>
    </>
  );
}

/** The tool that the address names, whichever list is shown. */
function Wanted({ view: { source, tools }, name }: { view: SourceView; name: string | null }) {
  const console = useConsole();
  const chosen = tools.find((tool) => tool.name === name);
  if (name === null) return null;
  if (!chosen) return <Callout tone="warning" title={`${source.name} has no tool ${name}`} testId="no-such-tool" />;
  return <ToolSheet tool={chosen} source={source} onClose={() => console.go(hashOf("sources", source.name))} />;
}

function Tools({ view: { source, tools } }: { view: SourceView }) {
  return (
    <div class="table-wrap">
      <table class="table lean" data-testid="source-tools">
        <thead>
          <tr>
            <th scope="col">Tool</th>
            <th scope="col">State</th>
            <th scope="col">Effect</th>
            <FigureHeads />
            <th scope="col" class="number" title="About what it costs in a list: characters / 4">
              Tokens
            </th>
          </tr>
        </thead>
        <tbody>
          {tools.map((tool) => (
            <tr key={tool.name} data-tool={tool.name}>
              <ToolHead source={source} tool={tool} />
              <td data-label="State">
                <Badge {...standingOf(tool)} />
              </td>
              <td data-label="Effect">
                {tool.changes === true && <Badge text="changes" tone="warning" meaning="It changes something" />}
                {tool.changes === false && <Badge text="reads" tone="good" meaning="It only reads" />}
                {tool.approval !== "" && <Badge text="asks first" tone="info" meaning={tool.approval} />}
              </td>
              <FigureCells figures={tool.figures} tool={tool.name} />
              <td data-label="Tokens" class="number" data-unit="tokens">
                {tool.tokens?.toLocaleString("en") ?? ""}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ToolHead({ source, tool }: { source: SourceStatus; tool: SourceTool }) {
  return (
    <th scope="row" data-label="Tool">
      <a href={hashOf("sources", source.name, tool.name)}>
        <ToolName name={tool.name} />
      </a>
    </th>
  );
}

function standingOf(tool: SourceTool): { text: string; tone: Tone; meaning: string } {
  if (tool.standing === "ready") return { text: "ready", tone: "good", meaning: "Agents can be given it" };
  const meaning = tool.reason || MEANINGS[tool.standing]?.meaning || "";
  return { text: standingWord(tool.standing), tone: toneOf(tool.standing), meaning };
}

/** Everything about one tool: what it says of itself, what was accepted, and who has it. */
function ToolSheet({ tool, source, onClose }: { tool: SourceTool; source: SourceStatus; onClose: () => void }) {
  const agents = [...tool.access].filter(([, standing]) => standing === "granted" || standing === "asks");
  return (
    <Dialog title={tool.name} kind="sheet" testId="tool-sheet" onClose={onClose}>
      <div class="stack">
        <p class="source-facts">
          <Badge {...standingOf(tool)} />
          <span class="quiet">
            {tool.ownName !== tool.name && `${tool.ownName} `}of {source.name}
          </span>
        </p>
        {tool.reason !== "" && <Callout tone="warning" title={tool.reason} />}
        {tool.description !== "" && <p class="pre">{tool.description}</p>}
        <p>
          {agents.length === 0 ? "No agent has it." : "Agents that have it: "}
          {agents.map(([agent, standing], at) => (
            <span key={agent}>
              {at > 0 && ", "}
              <a href={hashOf("agents", agent)}>{agent}</a>
              {standing === "asks" && " (asks first)"}
            </span>
          ))}
        </p>
        <p class="quiet">
          <a href={auditHash({ kind: "call", toolPart: tool.name })}>{plural(tool.figures.calls, "call")}</a> since the
          gateway started, {tool.figures.failures} failed, {tool.figures.refusals} refused
          {tool.figures.medianMs !== null && `; typically ${ms(tool.figures.medianMs)}`}.
        </p>
        {tool.pin && tool.pin.state === "pinned" && (
          <p class="quiet" data-testid="accepted">
            Definition accepted by {tool.pin.pinnedBy} on {exact(tool.pin.pinnedAt)}.{" "}
            <code title={tool.pin.hash}>{tool.pin.hash.slice(0, 16)}</code>{" "}
            <CopyButton compact label={`Copy the hash of ${tool.name}`} text={() => tool.pin?.hash ?? ""} />
          </p>
        )}
        {tool.definition && (
          <section aria-label="Definition">
            <h3>Definition</h3>
            <JsonTree value={tool.definition} label="Definition" />
          </section>
        )}
        <p class="actions">
          {agents[0] && (
            <a class="button small" href={hashOf("try", agents[0][0], tool.name)}>
              <Icon name="flask" /> Open in the playground as {agents[0][0]}
            </a>
          )}
        </p>
      </div>
    </Dialog>
  );
}

/** Which agents have which tools; each cell is where that is changed. */
function Matrix({ view: { agents, tools, source } }: { view: SourceView }) {
  const [menu, setMenu] = useState<{ x: number; y: number; agent: string; tool: string; standing: string } | null>(
    null,
  );
  const [wish, setWish] = useState<Wish | null>(null);
  return (
    <div class="table-wrap">
      {menu && (
        <ContextMenu
          at={menu}
          label={`Change access of ${menu.agent} to ${menu.tool}`}
          items={wantsFor(menu.standing).map(([want, label]) => ({
            label,
            run: () => setWish({ agent: menu.agent, tool: menu.tool, want }),
          }))}
          onClose={() => setMenu(null)}
        />
      )}
      {wish && <AccessDialog wish={wish} onClose={() => setWish(null)} />}
      <table class="table matrix" data-testid="matrix">
        <thead>
          <tr>
            <th scope="col">Tool</th>
            {agents.map((agent) => (
              <th key={agent.name} scope="col">
                <a href={hashOf("agents", agent.name)}>{agent.name}</a>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {tools.map((tool) => (
            <tr key={tool.name} data-tool={tool.name}>
              <ToolHead source={source} tool={tool} />
              {agents.map((agent) => {
                const standing = tool.access.get(agent.name) ?? "";
                return (
                  <td key={agent.name} data-label={agent.name} data-agent={agent.name} data-standing={standing}>
                    {standing !== "" && (
                      <button
                        type="button"
                        class="cell-button"
                        aria-haspopup="menu"
                        aria-label={`${tool.name} for ${agent.name}: ${standingWord(standing)}. Change`}
                        onClick={(event) => {
                          const { left, bottom } = event.currentTarget.getBoundingClientRect();
                          setMenu({ x: left, y: bottom + 4, agent: agent.name, tool: tool.name, standing });
                        }}
                      >
                        <Badge
                          text={standingWord(standing)}
                          tone={toneOf(standing)}
                          meaning={MEANINGS[standing]?.meaning ?? ""}
                        />
                      </button>
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row" data-label="Tool">
              In its list
            </th>
            {agents.map((agent) => (
              <td key={agent.name} data-label={agent.name}>
                {agent.tools === 0
                  ? "none"
                  : `${plural(agent.tools, "tool")}, about ${agent.tokens.toLocaleString("en")} tokens`}
              </td>
            ))}
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

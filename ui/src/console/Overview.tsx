import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Badge } from "../components/Badge";
import { Card } from "../components/Card";
import { Icon, type IconName } from "../components/Icon";
import { Callout, Empty } from "../components/Notice";
import { useNow } from "../components/useNow";
import { ago, duration, plural } from "../lib/format";
import { type AuditRecord, type Project, text, waits } from "./facts";
import { useConsole } from "./model";
import type { CallNews } from "./news";
import { hashOf } from "./route";
import { TrafficChart } from "./TrafficChart";
import { trafficOf } from "./traffic";

const RECENT = 12;
const MOST = 60;

/** The project at a glance. */
export function Overview() {
  const console = useConsole();
  const project = console.project.value;
  if (project === null) return <p class="loading">Loading…</p>;
  return (
    <div class="view">
      <h1 class="visually-hidden">Overview</h1>
      {!project.healthy && (
        <Callout tone="danger" title="What agents do cannot be kept" testId="unhealthy">
          <p>The store takes nothing any more, so every change is refused. Look at the server's log and its disk.</p>
        </Callout>
      )}
      <Figures project={project} />
      <div class="columns">
        <div class="stack">
          <Calls project={project} />
          <Recent />
        </div>
        <div class="stack">
          <Waiting />
          <Sources project={project} />
          <AgentCards project={project} />
        </div>
      </div>
    </div>
  );
}

function Figures({ project }: { project: Project }) {
  const now = useNow(5_000);
  const console = useConsole();
  const traffic = trafficOf(project.traffic, now);
  const down = project.sources.filter((source) => source.problem !== "").length;
  const pending = console.approvals.value?.filter((one) => one.state === "pending").length ?? project.pending;
  const waiting = console.pins.value?.filter(waits).length ?? 0;
  const current = traffic.minutes.at(-1)?.calls ?? 0;
  return (
    <dl class="figures" data-testid="figures">
      <Figure
        label="Tools"
        value={project.tools}
        note={down > 0 ? `${plural(down, "source")} down` : `${plural(project.sources.length, "source")} up`}
        tone={down > 0 ? "bad" : ""}
      />
      <Figure
        label="Agents"
        value={project.agents.length}
        note={warningNote(project)}
        tone={project.agents.some((agent) => agent.warnings.length > 0) ? "warn" : ""}
      />
      <Figure
        label="Calls this minute"
        value={current}
        note={`${traffic.calls.toLocaleString("en")} in the last hour`}
      />
      <Figure
        label="Refused, last hour"
        value={traffic.refusals}
        note={traffic.failures > 0 ? plural(traffic.failures, "failure") : "no failures"}
        tone={traffic.failures > 0 ? "bad" : ""}
      />
      <Figure
        label="Waiting for you"
        value={pending + waiting}
        note={
          waiting > 0
            ? `${plural(waiting, "definition")} to look at`
            : pending > 0
              ? plural(pending, "approval")
              : "nothing to decide"
        }
        tone={pending + waiting > 0 ? "warn" : ""}
      />
    </dl>
  );
}

function warningNote(project: Project): string {
  const count = project.agents.reduce((sum, agent) => sum + agent.warnings.length, 0);
  return count > 0 ? plural(count, "warning") : "no warnings";
}

function Figure({
  label,
  value,
  note,
  tone = "",
}: {
  label: string;
  value: number;
  note: string;
  tone?: "" | "bad" | "warn";
}) {
  return (
    <div class="figure card">
      <dt>{label}</dt>
      <dd class="figure-value">{value.toLocaleString("en")}</dd>
      <dd class={`figure-note ${tone}`}>{note}</dd>
    </div>
  );
}

function Calls({ project }: { project: Project }) {
  const now = useNow(5_000);
  return (
    <Card
      title="Calls per minute"
      end={
        <span class="legend" aria-hidden="true">
          <span class="key good" /> done <span class="key refused" /> refused <span class="key failed" /> failed
        </span>
      }
    >
      <div class="card-body">
        <TrafficChart traffic={trafficOf(project.traffic, now)} />
      </div>
    </Card>
  );
}

interface Line {
  key: string;
  /** How many calls in a row this line stands for. */
  times: number;
  agent: string;
  tool: string;
  code: string;
  at: number;
  took: number;
}

/** The latest calls: those of the log when the page opened, then the ones heard of. */
function Recent() {
  const console = useConsole();
  const now = useNow();
  const [kept, setKept] = useState<AuditRecord[] | null>(null);
  useEffect(() => {
    console.api
      .audit({ kind: "call", agent: "", tool: "", outcome: "", since: "" }, null, MOST)
      .then((page) => setKept(latestOfEach(page.items)))
      .catch(() => setKept([]));
  }, []);
  const heard = console.calls.value;
  const known = new Set(heard.map((call) => `${call.callId} ${call.agent} ${call.tool}`));
  const all = [
    ...heard.map(lineOf),
    ...(kept ?? [])
      .filter((record) => !known.has(`${text(record.all, "callId")} ${record.agent} ${record.operation}`))
      .map(lineOfRecord),
  ];
  const lines = grouped(all).slice(0, RECENT);
  return (
    <Card title="Latest calls" testId="latest-calls" end={<a href={hashOf("audit")}>All in the audit log</a>}>
      {lines.length === 0 ? (
        <Empty icon="log" title={kept === null ? "Loading…" : "No calls yet"}>
          {kept !== null && <p>As soon as an agent calls a tool, it shows up here.</p>}
        </Empty>
      ) : (
        <ul class="lines">
          {lines.map((line) => (
            <li key={line.key} class="item">
              <Mark good={line.code === ""} />
              <span class="item-what">
                <code>{line.tool}</code> <span class="quiet">by {line.agent}</span>
                {line.times > 1 && <span class="times">× {line.times}</span>}
              </span>
              {line.code !== "" && (
                <Badge
                  text={line.code}
                  tone={line.code === "internal" ? "danger" : "warning"}
                  meaning="How the call ended"
                />
              )}
              <span class="meta">{duration(line.took)}</span>
              <span class="meta item-when">{ago(line.at, now)}</span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

/** A call that changes something outside has a record of its beginning, too, which says no more than that of its end. */
function latestOfEach(newestFirst: AuditRecord[]): AuditRecord[] {
  const seen = new Set<string>();
  return newestFirst.filter(({ callId }) => !seen.has(callId) && seen.add(callId));
}

function lineOf(call: CallNews): Line {
  return {
    key: `${call.callId}-${call.at}`,
    times: 1,
    agent: call.agent,
    tool: call.tool,
    code: call.code,
    at: call.at,
    took: call.took,
  };
}

function lineOfRecord(record: AuditRecord): Line {
  const good = record.outcome === "success" || record.outcome === "replayed";
  return {
    key: `r${record.number}`,
    times: 1,
    agent: record.agent,
    tool: record.operation,
    code: good ? "" : record.code || record.outcome,
    at: Date.parse(record.timestamp),
    took: record.durationMs,
  };
}

/** Calls in a row that are alike become one line. */
function grouped(lines: Line[]): Line[] {
  const groups: Line[] = [];
  for (const line of lines) {
    const last = groups.at(-1);
    if (last && last.agent === line.agent && last.tool === line.tool && last.code === line.code) last.times += 1;
    else groups.push(line);
  }
  return groups;
}

export function Mark({ good }: { good: boolean }) {
  return (
    <span class={`mark ${good ? "good" : "bad"}`}>
      <Icon name={good ? "check" : "close"} size={12} />
      <span class="visually-hidden">{good ? "succeeded" : "did not succeed"}</span>
    </span>
  );
}

function Waiting() {
  const console = useConsole();
  const pending = console.approvals.value?.filter((one) => one.state === "pending") ?? [];
  const pins = console.pins.value?.filter(waits) ?? [];
  const now = useNow();
  return (
    <Card title="Waiting for you" testId="waiting">
      {pending.length + pins.length === 0 ? (
        <p class="card-body quiet">Nothing to decide.</p>
      ) : (
        <ul class="lines">
          {pending.slice(0, 5).map((one) => (
            <Line key={one.id} icon="inbox" href={hashOf("approvals", one.id)} note={ago(one.requestedAt, now)}>
              <code>{one.tool}</code> <span class="quiet">for {one.agent}</span>
            </Line>
          ))}
          {pins.slice(0, 5).map((pin) => (
            <Line
              key={`${pin.server}/${pin.tool}`}
              icon="pin"
              href={hashOf("sources")}
              note={pin.state === "changed" ? "changed definition" : "new definition"}
            >
              <code>{pin.tool}</code> <span class="quiet">of {pin.server}</span>
            </Line>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Line({
  icon,
  href,
  note,
  children,
}: {
  icon: IconName;
  href: string;
  note: string;
  children: ComponentChildren;
}) {
  return (
    <li>
      <a class="item" href={href}>
        <span class="mark warn">
          <Icon name={icon} size={14} />
        </span>
        <span class="item-what">{children}</span>
        <span class="meta">{note}</span>
      </a>
    </li>
  );
}

const KINDS: Record<string, string> = {
  mcp: "MCP server",
  http: "HTTP tools",
  extension: "extensions",
  builtin: "built in",
};

function Sources({ project }: { project: Project }) {
  return (
    <Card title="Sources" testId="sources">
      {project.sources.length === 0 ? (
        <p class="card-body quiet">
          Only the built-in tools. Name MCP servers, HTTP tools or extensions in the project file to add more.
        </p>
      ) : (
        <ul class="lines">
          {project.sources.map((source) => (
            <li key={source.name} class="item" data-testid="source" data-up={source.problem === ""}>
              <span class={`dot ${source.problem === "" ? "up" : "down"}`} aria-hidden="true" />
              <span class="item-what">
                <strong>{source.name}</strong> <span class="quiet">{KINDS[source.kind] ?? source.kind}</span>
                {source.problem !== "" && <span class="why">{source.problem}</span>}
                {source.notice !== "" && <span class="why warn">{source.notice}</span>}
                {source.takesLogin && (source.problem !== "" || source.notice !== "") && <LogIn server={source.name} />}
                {source.instructions !== "" && (
                  <details data-testid="instructions">
                    <summary class="quiet">What it says of itself, which no agent is told</summary>
                    <span class="why">{source.instructions}</span>
                  </details>
                )}
              </span>
              <span class="meta">{source.problem === "" ? plural(source.tools, "tool") : "down"}</span>
            </li>
          ))}
        </ul>
      )}
      {project.rejected.length > 0 && (
        <details class="messages">
          <summary>{plural(project.rejected.length, "tool")} not taken into the pool</summary>
          <ul class="lines">
            {project.rejected.map((one, index) => (
              <li key={index} class="item">
                <span class="item-what">
                  <code>{one.name}</code> <span class="quiet">of {one.source}</span>
                  <span class="why">{one.reason}</span>
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </Card>
  );
}

/** Leads to where the person agrees; the browser comes back to the console. */
function LogIn({ server }: { server: string }) {
  const console = useConsole();
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const begin = async (): Promise<void> => {
    setBusy(true);
    setProblem("");
    try {
      const address = new URL(await console.api.beginLogin(server));
      if (address.protocol !== "https:" && address.protocol !== "http:") throw new Error("That is no address.");
      location.assign(address);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  return (
    <span class="stack">
      <span>
        <button type="button" class="button small" disabled={busy} onClick={() => void begin()} data-testid="log-in">
          Log in to {server}
        </button>
      </span>
      {problem !== "" && (
        <span class="field-problem" role="alert">
          {problem}
        </span>
      )}
    </span>
  );
}

function AgentCards({ project }: { project: Project }) {
  return (
    <Card title="Agents" testId="agents-card">
      <ul class="lines">
        {project.agents.map((agent) => (
          <li key={agent.name}>
            <a class="item" href={hashOf("agents", agent.name)}>
              <span class={`mark ${agent.warnings.length > 0 ? "warn" : "plain"}`}>
                <Icon name={agent.warnings.length > 0 ? "warning" : "agents"} size={14} />
              </span>
              <span class="item-what">
                <strong>{agent.name}</strong> <span class="quiet">{agent.readOnly ? "read-only" : agent.role}</span>
                {agent.warnings.map((warning) => (
                  <span key={warning} class="why warn">
                    {warning}
                  </span>
                ))}
              </span>
              <span class="meta">{plural(agent.tools, "tool")}</span>
            </a>
          </li>
        ))}
      </ul>
    </Card>
  );
}

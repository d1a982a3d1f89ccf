import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Badge } from "../components/Badge";
import { Card } from "../components/Card";
import { Icon, type IconName } from "../components/Icon";
import { Callout, Empty } from "../components/Notice";
import { Select } from "../components/Select";
import { useNow } from "../components/useNow";
import { ago, duration, plural } from "../lib/format";
import { NO_FILTER } from "./api";
import { type AuditRecord, type Minute, type Project, waits } from "./facts";
import { useConsole } from "./model";
import { actorOf, type CallNews } from "./news";
import { latestOfEach, OUTCOME_MEANINGS, OUTCOME_TONES } from "./outcomes";
import { auditHash, hashOf } from "./route";
import { type Measure, TrafficChart } from "./TrafficChart";
import { dayOf, trafficOf } from "./traffic";
import { wordsOf } from "./troubles";
import { ViewHead } from "./ViewHead";
import { Welcome } from "./Welcome";
import { When } from "./When";

const RECENT = 12;
/** From how many calls of an agent on they are told in one line. */
const FOLDED = 4;
const MOST = 200;

/** The project at a glance. */
export function Overview() {
  const console = useConsole();
  const project = console.project.value;
  if (project === null) return <p class="loading">Loading…</p>;
  return (
    <div class="view">
      <ViewHead title={project.name}>
        Toolgrove gives every agent exactly the tools it should have, asks you where you want to be asked, and keeps a
        record of every call.
      </ViewHead>
      {project.troubles.map((trouble) => {
        const { title, text, isServed } = wordsOf(trouble);
        return (
          <Callout key={trouble} tone={isServed ? "warning" : "danger"} title={title} testId={`trouble-${trouble}`}>
            <p>{text}</p>
          </Callout>
        );
      })}
      <Welcome project={project} />
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
  // The same hour as the figures': from the beginning of its first minute.
  const since = new Date((traffic.minutes[0]?.minute ?? 0) * 1_000).toISOString();
  const lastHour = (outcome: string): string => auditHash({ kind: "call", outcome, since });
  const ours = builtIn(project) > 0 ? 1 : 0;
  return (
    <ul class="figures" data-testid="figures">
      <Figure
        label="Waiting for you"
        value={pending + waiting}
        href={pending > 0 || waiting === 0 ? hashOf("approvals") : hashOf("sources")}
        note={
          waiting > 0
            ? `${plural(waiting, "definition")} to look at`
            : pending > 0
              ? plural(pending, "approval")
              : "nothing to decide"
        }
        tone={pending + waiting > 0 ? "warn" : ""}
      />
      <Figure
        label="Calls, last hour"
        value={traffic.calls}
        href={lastHour("")}
        note={`${traffic.minutes.at(-1)?.calls ?? 0} this minute`}
      />
      <Figure
        label="Refused, last hour"
        value={traffic.refusals}
        href={lastHour("refused")}
        note={traffic.refusals > 0 ? "see which rule" : "no refusals"}
      />
      <Figure
        label="Failed, last hour"
        value={traffic.failures}
        href={lastHour("failure")}
        note={traffic.failures > 0 ? "see what went wrong" : "no failures"}
        tone={traffic.failures > 0 ? "bad" : ""}
      />
      <Figure
        label="Agents"
        value={project.agents.length}
        href={hashOf("agents")}
        note={warningNote(project)}
        tone={project.agents.some((agent) => agent.warnings.length > 0) ? "warn" : ""}
      />
      <Figure
        label="Tools"
        value={project.tools}
        href={hashOf("sources")}
        note={down > 0 ? `${plural(down, "source")} down` : `${plural(project.sources.length + ours, "source")} up`}
        tone={down > 0 ? "bad" : ""}
      />
    </ul>
  );
}

/** How many tools come from no source but Toolgrove itself. */
function builtIn(project: Project): number {
  return Math.max(0, project.tools - project.sources.reduce((sum, source) => sum + source.tools, 0));
}

function warningNote(project: Project): string {
  const count = project.agents.reduce((sum, agent) => sum + agent.warnings.length, 0);
  return count > 0 ? plural(count, "warning") : "no warnings";
}

function Figure({
  label,
  value,
  note,
  href,
  tone = "",
}: {
  label: string;
  value: number;
  note: string;
  href: string;
  tone?: "" | "bad" | "warn";
}) {
  return (
    <li>
      <a class="figure card" href={href}>
        <span class="figure-label">{label}</span>
        <span class="figure-value">{value.toLocaleString("en")}</span>
        <span class={`figure-note ${tone}`}>{note}</span>
      </a>
    </li>
  );
}

function Calls({ project }: { project: Project }) {
  const console = useConsole();
  const now = useNow(5_000);
  const [span, setSpan] = useState<"hour" | "day">("hour");
  const [measure, setMeasure] = useState<Measure>("calls");
  const [agent, setAgent] = useState("");
  const [day, setDay] = useState<Minute[]>([]);
  const own = span === "day" || agent !== "";
  useEffect(() => {
    if (own) console.api.traffic(agent).then(setDay, () => setDay([]));
  }, [own, agent, project.traffic]);
  const told = own ? day : project.traffic;
  const shown = span === "hour" ? trafficOf(told, now) : dayOf(told, now);
  const stamp = (seconds: number): string => new Date(seconds * 1_000).toISOString();
  return (
    <Card
      title="Calls"
      end={
        <span class="chart-tools">
          <Select
            label="Agent"
            value={agent}
            options={[["", "All agents"], ...project.agents.map(({ name }) => [name, name] as const)]}
            onChange={setAgent}
          />
          <Select
            label="Measure"
            value={measure}
            options={[
              ["calls", "How many"],
              ["latency", "How long"],
            ]}
            onChange={(value) => setMeasure(value as Measure)}
          />
          <Select
            label="Span"
            value={span}
            options={[
              ["hour", "Last hour"],
              ["day", "Last day"],
            ]}
            onChange={(value) => setSpan(value as "hour" | "day")}
          />
        </span>
      }
    >
      <div class="card-body">
        <TrafficChart
          traffic={shown}
          measure={measure}
          onOpen={(from, until) =>
            console.go(auditHash({ kind: "call", agent, since: stamp(from), until: stamp(until) }))
          }
        />
        <p class="legend" aria-hidden="true">
          {measure === "calls" ? (
            <>
              <span class="key good" /> done <span class="key waiting" /> waiting <span class="key refused" /> refused{" "}
              <span class="key failed" /> failed
              {shown.cancelled > 0 && (
                <>
                  {" "}
                  <span class="key slow" /> cancelled
                </>
              )}
            </>
          ) : (
            <>
              <span class="key good" /> on average <span class="key slow" /> slowest
            </>
          )}
        </p>
      </div>
    </Card>
  );
}

interface Line {
  key: string;
  callId: string;
  /** How many calls this line stands for. */
  times: number;
  agent: string;
  tools: string[];
  outcome: string;
  code: string;
  byOperator: boolean;
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
      .audit({ ...NO_FILTER, kind: "call" }, null, MOST)
      .then((page) => setKept(latestOfEach(page.items)))
      .catch(() => setKept([]));
  }, []);
  const heard = console.calls.value;
  const known = new Set(heard.map((call) => `${call.callId} ${call.agent} ${call.tool}`));
  const all = [
    ...heard.map(lineOf),
    ...(kept ?? [])
      .filter((record) => !known.has(`${record.callId} ${record.agent} ${record.operation}`))
      .map(lineOfRecord),
  ];
  const lines = folded(all).slice(0, RECENT);
  return (
    <Card title="Latest calls" testId="latest-calls" end={<a href={hashOf("audit")}>All in the audit log</a>}>
      {lines.length === 0 ? (
        <Empty icon="log" title={kept === null ? "Loading…" : "No calls yet"}>
          {kept !== null && <p>As soon as an agent calls a tool, it shows up here.</p>}
        </Empty>
      ) : (
        <ul class="lines">
          {lines.map((line) => (
            <li key={line.key}>
              <a
                class="item"
                href={line.times > 1 ? auditHash({ kind: "call", agent: line.agent }) : hashOf("calls", line.callId)}
              >
                <Mark outcome={line.outcome} />
                <span class="item-what">
                  {line.times > 1 ? (
                    <>
                      <strong>{line.agent}</strong> <span class="times">× {line.times}</span>{" "}
                      <span class="quiet">{line.tools.join(", ")}</span>
                    </>
                  ) : (
                    <>
                      <code>{line.tools[0]}</code> <span class="quiet">by {actorOf(line)}</span>
                    </>
                  )}
                </span>
                {line.outcome !== "success" && line.outcome !== "replayed" && (
                  <Badge
                    text={
                      line.outcome === "refused" || line.outcome === "failure"
                        ? line.code || line.outcome
                        : line.outcome
                    }
                    tone={OUTCOME_TONES[line.outcome] ?? "neutral"}
                    meaning={OUTCOME_MEANINGS[line.outcome] ?? "How the call ended"}
                  />
                )}
                <span class="meta">{line.times > 1 ? "" : duration(line.took)}</span>
                <span class="meta item-when">
                  <When at={line.at} now={now} />
                </span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function lineOf(call: CallNews): Line {
  return {
    key: `${call.callId}-${call.at}`,
    callId: call.callId,
    times: 1,
    agent: call.agent,
    tools: [call.tool],
    outcome: call.outcome,
    code: call.code,
    byOperator: call.byOperator,
    at: call.at,
    took: call.took,
  };
}

function lineOfRecord(record: AuditRecord): Line {
  return {
    key: `r${record.number}`,
    callId: record.callId,
    times: 1,
    agent: record.agent,
    tools: [record.operation],
    outcome: record.outcome,
    code: record.code,
    byOperator: record.byOperator,
    at: Date.parse(record.timestamp),
    took: record.durationMs,
  };
}

/** What one agent did again and again without a hitch is one line, so that it drowns nothing else. */
function folded(lines: Line[]): Line[] {
  const often = new Map<string, number>();
  for (const { agent, outcome } of lines) if (outcome === "success") often.set(agent, (often.get(agent) ?? 0) + 1);
  const groups: Line[] = [];
  const open = new Map<string, Line>();
  for (const line of lines) {
    const group = open.get(line.agent);
    if (line.outcome !== "success" || (often.get(line.agent) ?? 0) < FOLDED || line.byOperator) {
      groups.push(line);
    } else if (group) {
      group.times += 1;
      for (const tool of line.tools) if (!group.tools.includes(tool)) group.tools.push(tool);
    } else {
      const first = { ...line, key: `${line.agent} folded`, tools: [...line.tools] };
      open.set(line.agent, first);
      groups.push(first);
    }
  }
  return groups;
}

const MARKS: Record<string, [tone: string, icon: IconName, words: string]> = {
  success: ["good", "check", "succeeded"],
  replayed: ["good", "check", "succeeded"],
  waiting: ["info", "clock", "waits"],
  begun: ["info", "clock", "is under way"],
  refused: ["warn", "close", "was refused"],
  cancelled: ["plain", "stop", "was cancelled"],
};

function Mark({ outcome }: { outcome: string }) {
  const [tone, icon, words] = MARKS[outcome] ?? ["bad", "close", "failed"];
  return (
    <span class={`mark ${tone}`}>
      <Icon name={icon} size={12} />
      <span class="visually-hidden">{words}</span>
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
      {project.sources.length === 0 && builtIn(project) === 0 ? (
        <p class="card-body quiet">
          Only the built-in tools. Name MCP servers, HTTP tools or extensions in the project file to add more.
        </p>
      ) : (
        <ul class="lines">
          {builtIn(project) > 0 && (
            <li class="item" data-testid="built-in">
              <span class="dot up" aria-hidden="true" />
              <span class="item-what">
                <strong>built in</strong> <span class="quiet">the tree, and sub-agents</span>
              </span>
              <span class="meta">{plural(builtIn(project), "tool")}</span>
            </li>
          )}
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

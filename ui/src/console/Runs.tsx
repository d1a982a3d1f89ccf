import { useEffect, useState } from "preact/hooks";
import { Badge, type Tone } from "../components/Badge";
import { Card } from "../components/Card";
import { Icon, type IconName } from "../components/Icon";
import { Callout, Empty } from "../components/Notice";
import { useNow } from "../components/useNow";
import { duration, plural } from "../lib/format";
import { isObject } from "../lib/json";
import { Fact, Outcome } from "./CallPage";
import { amount, at, objectOr, text } from "./facts";
import { useConsole } from "./model";
import { outcomeOf } from "./outcomes";
import { auditHash, hashOf } from "./route";
import type { RunEvent, RunStory, RunSummary } from "./stories";
import { ViewHead } from "./ViewHead";
import { When } from "./When";

const EVERY = 1_500;
const TONES: Record<string, Tone> = { running: "info", success: "good", failure: "danger", ended: "neutral" };

/** The latest runs, or one of them. */
export function Runs() {
  const console = useConsole();
  const { subject } = console.route.value;
  return subject === null ? <RunTable /> : <RunPage key={subject} id={subject} />;
}

function RunTable() {
  const console = useConsole();
  const now = useNow(5_000);
  const [runs, setRuns] = useState<RunSummary[] | null>(null);
  useEffect(() => {
    const load = (): void =>
      void console.api.runs().then(setRuns, (error) => console.say(error instanceof Error ? error.message : ""));
    load();
    const timer = setInterval(load, EVERY * 2);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="view narrow">
      <ViewHead title="Runs">
        Tasks that agents worked on since this gateway started. Each of their calls is in the{" "}
        <a href="#/audit">audit log</a> too.
      </ViewHead>
      <Card title="Latest runs" testId="runs">
        {runs?.length === 0 && (
          <Empty icon="play" title="No runs yet">
            <p>
              <code>toolgrove run AGENT "task"</code> or <code>POST /agents/AGENT/runs</code> starts one.
            </p>
          </Empty>
        )}
        <ul class="lines">
          {runs?.map((run) => (
            <li key={run.id}>
              <a class="item" href={hashOf("runs", run.id)} data-testid="run-row">
                <span class="item-what">
                  <strong>{run.agent}</strong>{" "}
                  <span class="quiet">
                    {run.kind === "model" ? "with its model" : "a list of calls"} · {plural(run.calls, "call")}
                  </span>
                </span>
                <Badge text={run.state} tone={TONES[run.state] ?? "neutral"} meaning="How far it is" />
                <span class="meta">{run.seconds === null ? "" : duration(run.seconds * 1_000)}</span>
                <span class="meta item-when">
                  <When at={run.startedAt} now={now} />
                </span>
              </a>
            </li>
          ))}
        </ul>
      </Card>
    </div>
  );
}

function RunPage({ id }: { id: string }) {
  const console = useConsole();
  const now = useNow(5_000);
  const [story, setStory] = useState<RunStory | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let over = false;
    let timer: ReturnType<typeof setTimeout>;
    const load = async (): Promise<void> => {
      try {
        const found = await console.api.run(id);
        if (over) return;
        setStory(found);
        if (found.state === "running") timer = setTimeout(() => void load(), EVERY);
      } catch (error) {
        if (!over) setProblem(error instanceof Error ? error.message : String(error));
      }
    };
    void load();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [id]);
  if (problem !== "")
    return (
      <div class="view">
        <Empty icon="play" title="This run is not known" testId="no-run">
          <p>{problem}</p>
          <a href="#/runs">Go to the latest runs</a>
        </Empty>
      </div>
    );
  if (story === null) return <p class="loading">Loading…</p>;
  const ended = story.events.find((event) => event.type === "run_finished");
  return (
    <div class="view narrow" data-testid="run-page" data-state={story.state}>
      <header class="view-head">
        <p class="crumbs">
          <a href="#/runs">Runs</a> › run
        </p>
        <h1 class="call-title">
          {story.agent} <Badge text={story.state} tone={TONES[story.state] ?? "neutral"} meaning="How far it is" />
        </h1>
        <p class="quiet">
          {story.startedAt !== null && (
            <>
              Started <When at={story.startedAt} now={now} />.{" "}
            </>
          )}
          <a href={auditHash({ run: story.id })}>Its calls in the audit log</a>
        </p>
      </header>
      {story.input !== "" && (
        <Card title="The task" testId="run-task">
          <p class="card-body pre">{story.input}</p>
        </Card>
      )}
      {!story.kept && (
        <Callout tone="info" title="Told from the audit log">
          <p>The calls are here; what was said in between was not kept.</p>
        </Callout>
      )}
      <Card title="What happened" testId="timeline">
        <ol class="timeline">
          {merged(story.events).map((event, index) => (
            <Moment key={index} event={event} since={story.startedAt ?? event.at} />
          ))}
        </ol>
        {story.leftOut > 0 && <p class="card-body quiet">{plural(story.leftOut, "event")} more were not kept.</p>}
      </Card>
      {ended && <Ending event={ended} />}
    </div>
  );
}

/** A call that has ended needs no line for its beginning. */
function merged(events: RunEvent[]): RunEvent[] {
  const ended = new Set(events.filter((one) => isEnd(one)).map((one) => one.callId));
  return events.filter(
    (one) =>
      one.type !== "run_finished" &&
      !(one.type === "tool_started" && ended.has(one.callId)) &&
      !(one.type === "tool_progress" && ended.has(one.callId)),
  );
}

function isEnd({ type }: RunEvent): boolean {
  return type === "tool_succeeded" || type === "tool_failed";
}

const ICONS: Record<string, IconName> = {
  text: "agents",
  tool_started: "clock",
  tool_progress: "clock",
  tool_succeeded: "check",
  tool_failed: "close",
  approval_requested: "inbox",
  approval_decided: "inbox",
};

function Moment({ event, since }: { event: RunEvent; since: number }) {
  const waits = event.reason === "approval_required";
  const tone =
    event.type === "tool_succeeded" ? "good" : event.type === "tool_failed" ? (waits ? "warn" : "bad") : "plain";
  return (
    <li class="moment" data-type={event.type} style={{ "--depth": String(Math.min(event.depth, 8)) }}>
      <span class={`mark ${tone}`}>
        <Icon name={ICONS[event.type] ?? "info"} size={12} />
      </span>
      <div class="moment-what">
        <span class="quiet">{event.agent}</span> <Said event={event} />
      </div>
      <span class="meta" title={new Date(event.at).toLocaleString("en-GB")}>
        +{duration(Math.max(0, event.at - since))}
      </span>
    </li>
  );
}

function Said({ event }: { event: RunEvent }) {
  switch (event.type) {
    case "text":
      return <span class="pre said">{event.text}</span>;
    case "tool_started":
      return (
        <>
          calls <code>{event.tool}</code>…
        </>
      );
    case "tool_progress":
      return <span class="quiet">{event.message}</span>;
    case "approval_requested":
      return (
        <>
          asks a person about <code>{event.tool}</code>:{" "}
          <a href={hashOf("approvals", text(event.all, "approvalId"))}>look at it</a>
        </>
      );
    case "approval_decided":
      return (
        <>
          {at(event.all, "approved") === true ? "was allowed to run" : "was refused"} <code>{event.tool}</code> by{" "}
          {text(event.all, "by")}
        </>
      );
    case "tool_succeeded":
    case "tool_failed":
      return (
        <>
          <a href={hashOf("calls", event.callId)}>
            <code>{event.tool}</code>
          </a>{" "}
          {event.type === "tool_failed" && <Outcome outcome={outcomeOf(event.code, event.reason)} />}{" "}
          <span class="quiet">{duration(event.took)}</span>
          {event.message !== "" && <span class="why">{event.message}</span>}
        </>
      );
    default:
      return <span class="quiet">{event.type}</span>;
  }
}

function Ending({ event }: { event: RunEvent }) {
  const usage = objectOr(at(event.all, "usage"));
  const delegated = objectOr(at(event.all, "delegated"));
  const helped = amount(delegated, "succeeded") + amount(delegated, "failed");
  return (
    <Card title="In all" testId="run-usage">
      <dl class="record-facts card-body">
        <Fact label="Took">{duration(amount(event.all, "seconds") * 1_000)}</Fact>
        <Fact label="Calls">
          {plural(amount(event.all, "toolCalls"), "call")}, {amount(event.all, "failed")} of its own failed
          {helped > 0 && `; ${helped} by sub-agents`}
        </Fact>
        {Object.entries(usage).map(([model, tokens]) => (
          <Fact key={model} label={`Tokens of ${model}`}>
            {isObject(tokens) &&
              `${amount(tokens, "input").toLocaleString("en")} read, ${amount(tokens, "output").toLocaleString("en")} written`}
          </Fact>
        ))}
        {event.message !== "" && <Fact label="Problem">{event.message}</Fact>}
      </dl>
    </Card>
  );
}

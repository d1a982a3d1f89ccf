import { useEffect, useRef, useState } from "preact/hooks";
import { CopyButton } from "../components/CopyButton";
import { Icon } from "../components/Icon";
import { JsonText } from "../components/JsonText";
import { JsonTree } from "../components/JsonTree";
import { Empty } from "../components/Notice";
import { ProgressBar } from "../components/ProgressBar";
import { Tabs } from "../components/Tabs";
import { readFailure } from "../lib/failure";
import { duration, size } from "../lib/format";
import { textIn } from "../lib/http";
import { printJson } from "../lib/json-print";
import { type Opened, useBench } from "./bench";
import { STACKED } from "./layout";
import { isActive, type Run } from "./runner";

/** What came of the last run. */
export function ResponseCard({ opened }: { opened: Opened }) {
  const bench = useBench();
  const run = bench.runner.runs.value.get(opened.tool.name);
  const card = useRef<HTMLElement>(null);
  // Below the form, as on a phone, the result would appear unseen.
  useEffect(() => {
    if (run?.status === "running" && matchMedia(STACKED).matches) card.current?.scrollIntoView({ block: "start" });
  }, [run?.startedAt]);
  return (
    <section
      ref={card}
      class="card response"
      aria-label="Result"
      data-testid="result"
      data-status={run ? statusOf(run) : "idle"}
    >
      <p class="visually-hidden" role="status">
        {run ? spoken(run) : ""}
      </p>
      {!run && (
        <Empty icon="play" title="Nothing run yet">
          <p>
            {bench.canRun.value
              ? "Fill in the arguments and press Run; the result shows up here."
              : "Results show up here once running tools is turned on."}
          </p>
        </Empty>
      )}
      {run && isActive(run) && <Running run={run} />}
      {run?.status === "done" && <Done run={run} />}
      {run?.status === "failed" && (statusOf(run) === "waiting" ? <Waits run={run} /> : <Failed run={run} />)}
      {run?.status === "cancelled" && (
        <Empty icon="stop" title="Cancelled" testId="cancelled">
          <p>You stopped this call after {duration(run.took)}. What the tool had done by then stays done.</p>
        </Empty>
      )}
      {run && !isActive(run) && run.messages.length > 0 && <Messages messages={run.messages} />}
    </section>
  );
}

function spoken(run: Run): string {
  if (run.status === "done") return `Finished in ${duration(run.took)}`;
  if (statusOf(run) === "waiting") return "The call waits for an approval";
  if (run.status === "failed") return "The call failed";
  if (run.status === "cancelled") return "Cancelled";
  return run.status === "asking" ? "The tool asks a question" : "Running";
}

function Running({ run }: { run: Run }) {
  const { progress } = run;
  return (
    <div class="running" data-testid="progress">
      <div class="status-row">
        <span class="status busy">{run.status === "asking" ? "Waiting for your answer" : "Running"}</span>
        <Elapsed since={run.startedAt} />
      </div>
      <ProgressBar label="Progress of the call" value={progress?.progress ?? null} total={progress?.total ?? null} />
      <p class="progress-message" role="status">
        {progress?.message ?? ""}
      </p>
      {run.messages.length > 1 && <Messages messages={run.messages} />}
      <p class="quiet wide-only">
        <kbd>Esc</kbd> cancels
      </p>
    </div>
  );
}

function Elapsed({ since }: { since: number }) {
  const [now, setNow] = useState(() => performance.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 100);
    return () => clearInterval(timer);
  }, []);
  return (
    <span class="meta" aria-hidden="true">
      {((now - since) / 1_000).toFixed(1)} s
    </span>
  );
}

function Messages({ messages }: { messages: string[] }) {
  return (
    <details class="messages">
      <summary>{messages.length} messages</summary>
      <ol>
        {messages.map((message, index) => (
          <li key={index}>{message}</li>
        ))}
      </ol>
    </details>
  );
}

function Done({ run }: { run: Run }) {
  const [view, setView] = useState<"tree" | "json">("tree");
  return (
    <div class="card-body">
      <Tabs
        label="Result as"
        look="pill"
        current={view}
        onSelect={setView}
        tabs={[
          { name: "tree", label: "Result" },
          { name: "json", label: "Raw JSON" },
        ]}
        end={
          <>
            <span class="status good">
              <Icon name="check" size={14} />
              Done
            </span>
            <span class="meta" data-testid="timing">
              {duration(run.took)}
            </span>
            <span class="meta" data-testid="size">
              {size(run.size)}
            </span>
            <CopyButton compact label="Copy result" text={() => printJson(run.result, 2)} testId="copy-result" />
          </>
        }
      >
        <div data-testid="result-value">
          {view === "tree" ? (
            <JsonTree value={run.result} label="result" />
          ) : (
            <JsonText value={run.result} label="Result as JSON" />
          )}
        </div>
      </Tabs>
    </div>
  );
}

/** A call that a person must agree to has not failed. */
function statusOf(run: Run): string {
  const { facts } = run.status === "failed" ? readFailure(run.error) : { facts: null };
  return facts && textIn(facts, "reason") === "approval_required" ? "waiting" : run.status;
}

function Waits({ run }: { run: Run }) {
  const { Advice } = useBench();
  const { message, facts } = readFailure(run.error);
  return (
    <div class="card-body" data-testid="result-waiting">
      <div class="status-row">
        <span class="status info">
          <Icon name="clock" size={14} />
          Waiting for approval
        </span>
        <span class="meta">{duration(run.took)}</span>
      </div>
      {Advice && <Advice run={run} />}
      <details class="plain-details">
        <summary>What the agent is told</summary>
        <p class="pre">{message}</p>
        {facts && <JsonTree value={facts} label="More about it" />}
      </details>
    </div>
  );
}

function Failed({ run }: { run: Run }) {
  const { Advice } = useBench();
  const { message, code, facts } = readFailure(run.error);
  return (
    <div class="card-body failed" data-testid="result-error">
      <div class="status-row">
        <span class="status bad">
          <Icon name="warning" size={14} />
          {TITLES[code] ?? failureTitle(run.errorStatus)}
        </span>
        <span class="meta">
          {run.errorStatus > 0 && code === "" && `${run.errorStatus} · `}
          {duration(run.took)}
        </span>
        <CopyButton compact label="Copy error" text={() => run.error} />
      </div>
      <pre class="code error-text" tabIndex={0} role="region" aria-label="Error message">
        {message.slice(0, 50_000)}
      </pre>
      {facts && <JsonTree value={facts} label="More about the error" />}
      {run.result !== null && <JsonTree value={run.result} label="All that the tool said" />}
      {Advice && <Advice run={run} />}
    </div>
  );
}

/** For errors that bring a code of their own. */
const TITLES: Record<string, string> = {
  invalid_argument: "The arguments were refused",
  not_found: "Not found",
  forbidden: "Not allowed",
  conflict: "Conflict",
  rate_limited: "Too many calls",
  internal: "The tool failed",
};

function failureTitle(status: number): string {
  if (status === 0) return "Connection lost";
  if (status === 400) return "The server refused the arguments";
  if (status === 403) return "Not allowed";
  if (status === 404) return "No such tool";
  return status === 500 ? "The tool failed" : "The server refused the call";
}

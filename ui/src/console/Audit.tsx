import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Badge, type Tone } from "../components/Badge";
import { Card } from "../components/Card";
import { CopyButton } from "../components/CopyButton";
import { Dialog } from "../components/Dialog";
import { Icon } from "../components/Icon";
import { JsonText } from "../components/JsonText";
import { JsonTree } from "../components/JsonTree";
import { Callout, Empty } from "../components/Notice";
import { Select } from "../components/Select";
import { duration, plural } from "../lib/format";
import type { Json } from "../lib/json";
import { printJson } from "../lib/json-print";
import type { AuditFilter } from "./api";
import type { AuditRecord, Verification } from "./facts";
import { useConsole, useNews } from "./model";
import { exact } from "./moment";
import { hashOf } from "./route";

const PAGE = 50;
const OUTCOMES = ["success", "failure", "refused", "cancelled", "replayed", "begun", "unknown"];
const TONES: Record<string, Tone> = {
  success: "good",
  replayed: "info",
  failure: "danger",
  refused: "warning",
  cancelled: "neutral",
  begun: "info",
  unknown: "danger",
};
const MEANINGS: Record<string, string> = {
  begun: "It was sent; how it ended is in a later record",
  unknown: "The gateway stopped while it ran: it may have had its effect",
};
/** What a record is of, where it is no call. */
const KINDS: Record<string, string> = {
  approval: "Approval",
  pin: "Definition",
  token: "Token",
  configuration: "Configuration",
  sign_in: "Sign-in",
  refused_request: "Refused request",
  audit: "Audit log",
};
const SPANS: [string, number][] = [
  ["Any time", 0],
  ["Last hour", 3_600_000],
  ["Last day", 86_400_000],
  ["Last week", 604_800_000],
];

/** Everything that agents and people did, the newest first. */
export function Audit() {
  const console = useConsole();
  const { subject } = console.route.value;
  const [filter, setFilter] = useState<AuditFilter>({
    kind: "",
    agent: subject ?? "",
    tool: "",
    outcome: "",
    since: "",
  });
  const [span, setSpan] = useState(0);
  const [records, setRecords] = useState<AuditRecord[] | null>(null);
  const [next, setNext] = useState<number | null>(null);
  const [newer, setNewer] = useState(0);
  const [problem, setProblem] = useState("");
  const [shown, setShown] = useState<AuditRecord | null>(null);
  const latest = useRef(0);

  const load = async (before: number | null): Promise<void> => {
    const ticket = ++latest.current;
    try {
      const page = await console.api.audit(filter, before, PAGE);
      if (ticket !== latest.current) return;
      setRecords((old) => (before === null ? page.items : [...(old ?? []), ...page.items]));
      setNext(page.next);
      setProblem("");
      if (before === null) setNewer(0);
    } catch (error) {
      if (ticket === latest.current) setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  useEffect(() => {
    const timer = setTimeout(() => void load(null), records === null ? 0 : 200);
    return () => clearTimeout(timer);
  }, [filter]);
  useEffect(() => setFilter((old) => ({ ...old, agent: subject ?? "" })), [subject]);
  useNews(
    (news) => {
      if (news.type !== "call" || (filter.kind !== "" && filter.kind !== "call")) return;
      const fits =
        (filter.agent === "" || filter.agent === news.agent) && (filter.tool === "" || filter.tool === news.tool);
      if (fits) setNewer((count) => count + 1);
    },
    [filter],
  );
  const agents = console.project.value?.agents.map((agent) => agent.name) ?? [];
  const filtered = Object.values(filter).some((value) => value !== "");
  return (
    <div class="view">
      <header class="view-head across">
        <div>
          <h1>Audit</h1>
          <p class="quiet">
            What agents called and what people decided, each record sealed with the hash of the one before it.
          </p>
        </div>
        <Verify />
      </header>
      <Card
        title="Records"
        testId="audit"
        end={
          <span class="actions">
            <Export filter={filter} format="jsonl" />
            <Export filter={filter} format="csv" />
          </span>
        }
      >
        <form class="filters across" aria-label="Filter" onSubmit={(event) => event.preventDefault()}>
          <Select
            label="Kind"
            value={filter.kind}
            options={[["", "All kinds"], ["call", "Call"], ...Object.entries(KINDS)]}
            onChange={(kind) => setFilter({ ...filter, kind })}
          />
          <Select
            label="Agent"
            value={filter.agent}
            options={[["", "All agents"], ...agents.map((name) => [name, name] as const)]}
            onChange={(agent) => setFilter({ ...filter, agent })}
          />
          <label class="filter">
            <span class="eyebrow">Tool</span>
            <input
              class="input"
              data-search
              placeholder="Exact name"
              autocomplete="off"
              spellcheck={false}
              value={filter.tool}
              onInput={(event) => setFilter({ ...filter, tool: event.currentTarget.value.trim() })}
            />
          </label>
          <Select
            label="Outcome"
            value={filter.outcome}
            options={[["", "All outcomes"], ...OUTCOMES.map((name) => [name, name] as const)]}
            onChange={(outcome) => setFilter({ ...filter, outcome })}
          />
          <Select
            label="Since"
            value={String(span)}
            options={SPANS.map(([label, length]) => [String(length), label] as const)}
            onChange={(value) => {
              setSpan(Number(value));
              setFilter({
                ...filter,
                since: value === "0" ? "" : new Date(Date.now() - Number(value)).toISOString().replace("Z", "+00:00"),
              });
            }}
          />
        </form>
        {problem !== "" && <Callout tone="danger" title={problem} />}
        <div class="newer" role="status">
          {newer > 0 && (
            <button type="button" class="button small" data-testid="show-newer" onClick={() => void load(null)}>
              <Icon name="up" /> {plural(newer, "newer record")}
            </button>
          )}
        </div>
        {records?.length === 0 && <Empty icon="log" title={filtered ? "Nothing matches" : "No records yet"} />}
        {records !== null && records.length > 0 && <Records records={records} onShow={setShown} />}
        {next !== null && (
          <p class="card-body">
            <button type="button" class="button small" data-testid="older" onClick={() => void load(next)}>
              Show older
            </button>
          </p>
        )}
      </Card>
      {shown && <RecordDialog record={shown} onClose={() => setShown(null)} />}
    </div>
  );
}

function Records({ records, onShow }: { records: AuditRecord[]; onShow: (record: AuditRecord) => void }) {
  return (
    <div class="table-wrap">
      <table class="table" data-testid="records">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Who</th>
            <th scope="col">What</th>
            <th scope="col">Outcome</th>
            <th scope="col">Targets</th>
            <th scope="col" class="number">
              Took
            </th>
          </tr>
        </thead>
        <tbody>
          {records.map((record) => (
            <tr key={record.number} data-number={record.number}>
              <td data-label="When">
                <button
                  type="button"
                  class="row-button"
                  aria-label={`Record ${record.number}`}
                  onClick={() => onShow(record)}
                >
                  {exact(Date.parse(record.timestamp))}
                </button>
              </td>
              <td data-label="Who">
                <Who record={record} />
              </td>
              <th scope="row" data-label="What">
                {record.operation}
                {record.kind !== "call" && <span class="quiet small"> {KINDS[record.kind] ?? record.kind}</span>}
              </th>
              <td data-label="Outcome">
                <Badge
                  text={record.outcome}
                  tone={TONES[record.outcome] ?? "neutral"}
                  meaning={record.code || (MEANINGS[record.outcome] ?? "How it ended")}
                />
                {record.code !== "" && <span class="quiet small"> {record.code}</span>}
              </td>
              <td data-label="Targets" class="targets">
                {record.targets.slice(0, 3).join(", ")}
                {record.targets.length > 3 && ` +${record.targets.length - 3}`}
              </td>
              <td data-label="Took" class="number">
                {record.kind === "call" && record.outcome !== "begun" ? duration(record.durationMs) : "–"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RecordDialog({ record, onClose }: { record: AuditRecord; onClose: () => void }) {
  return (
    <Dialog
      title={`Record ${record.number}: ${record.operation}`}
      kind="sheet"
      testId="record"
      onClose={onClose}
      footer={<CopyButton label="Copy record" text={() => printJson(record.all, 2)} />}
    >
      <dl class="record-facts">
        <Fact label="When">{exact(Date.parse(record.timestamp))}</Fact>
        <Fact label="Who">
          <Who record={record} />
        </Fact>
        {record.chain.length > 1 && <Fact label="Through">{record.chain.join(" → ")}</Fact>}
        {record.parentCallId !== "" && (
          <Fact label="Works for call">
            <code>{record.parentCallId}</code>
          </Fact>
        )}
        {record.kind === "call" ? (
          <Fact label="Call">
            <code>{record.callId}</code>
          </Fact>
        ) : (
          <Fact label="Kind">{KINDS[record.kind] ?? record.kind}</Fact>
        )}
        <Fact label="Outcome">
          <Badge text={record.outcome} tone={TONES[record.outcome] ?? "neutral"} meaning="How it ended" /> {record.code}{" "}
          {MEANINGS[record.outcome]}
        </Fact>
        {record.message !== "" && <Fact label="Message">{record.message}</Fact>}
        {record.approval && (
          <Fact label="Approved">
            <a href={hashOf("approvals", record.approval.id)}>{record.approval.id}</a> by {record.approval.by}
          </Fact>
        )}
        {record.targets.length > 0 && <Fact label="Targets">{record.targets.join(", ")}</Fact>}
      </dl>
      <Body title="Arguments" value={record.arguments} />
      <Body title="Result" value={record.result} />
      <Body title="Details" value={record.details} />
      <h3 class="record-part">The record as it stands in the log</h3>
      <JsonTree value={record.all} label="record" />
    </Dialog>
  );
}

/** Who did it: an agent, the operator as an agent, or a person about an agent. */
function Who({ record }: { record: AuditRecord }) {
  if (record.by === "")
    return (
      <>
        {record.agent || (record.kind === "refused_request" && "a stranger")}
        {record.byOperator && <span class="quiet small"> by operator</span>}
      </>
    );
  return (
    <>
      {record.by}
      {record.agent !== "" && record.agent !== record.by && <span class="quiet small"> about {record.agent}</span>}
    </>
  );
}

function Fact({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** What a call was given or gave back, if it was kept. */
function Body({ title, value }: { title: string; value: Json | undefined }) {
  if (value === undefined || value === null) return null;
  return (
    <section aria-label={title} data-testid={`record-${title.toLowerCase()}`}>
      <h3 class="record-part">{title}</h3>
      <JsonText value={value} label={title} />
    </section>
  );
}

function Verify() {
  const console = useConsole();
  const [state, setState] = useState<"idle" | "busy" | "failed" | Verification>("idle");
  const verify = async (): Promise<void> => {
    setState("busy");
    try {
      setState(await console.api.verify());
    } catch {
      setState("failed");
    }
  };
  const found = typeof state === "object" ? state : null;
  return (
    <div class="verify">
      <button
        type="button"
        class="button"
        data-testid="verify"
        aria-disabled={state === "busy" ? "true" : undefined}
        onClick={() => void verify()}
      >
        <Icon name="shield" /> {state === "busy" ? "Verifying…" : "Verify the chain"}
      </button>
      <div role="status" data-testid="verified">
        <p class={`status ${found && !found.breach ? "good" : found || state === "failed" ? "bad" : "idle"}`}>
          {state === "failed" && "Could not be verified"}
          {found?.breach && brokenAt(found.breach)}
          {found && !found.breach && "Whole: no record was changed, removed or moved"}
        </p>
        {found && <Findings found={found} />}
      </div>
    </div>
  );
}

function brokenAt({ number, problem, file }: NonNullable<Verification["breach"]>): string {
  return `${file === "" ? "Broken" : `The copy ${file} is broken`} after ${plural(number, "record")}: ${problem}`;
}

/** What is no breach, and yet to be known. */
function Findings({ found: { removed, breaks, unchecked } }: { found: Verification }) {
  if (removed === 0 && breaks.length === 0 && unchecked.length === 0) return null;
  return (
    <ul class="findings" data-testid="findings">
      {removed > 0 && <li>Records up to {removed} are not in it: retention took them, or an earlier part has them</li>}
      {breaks.map(({ number, after, lost }) => (
        <li key={number}>
          Record {number} marks a break: the log was put back to record {after}, and had held records up to {lost}
        </li>
      ))}
      {unchecked.map((what) => (
        <li key={what}>Not checked: {what}</li>
      ))}
    </ul>
  );
}

function Export({ filter, format }: { filter: AuditFilter; format: "jsonl" | "csv" }) {
  const console = useConsole();
  const save = async (): Promise<void> => {
    try {
      const address = URL.createObjectURL(await console.api.export(filter, format));
      const link = document.createElement("a");
      link.href = address;
      link.download = `audit.${format}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 10_000);
    } catch (error) {
      console.say(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <button type="button" class="button small" data-testid={`export-${format}`} onClick={() => void save()}>
      <Icon name="download" /> {format === "jsonl" ? "JSON Lines" : "CSV"}
    </button>
  );
}

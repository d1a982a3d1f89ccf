import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Card } from "../components/Card";
import { CopyButton } from "../components/CopyButton";
import { Dialog } from "../components/Dialog";
import { Icon } from "../components/Icon";
import { JsonText } from "../components/JsonText";
import { JsonTree } from "../components/JsonTree";
import { Callout, Empty } from "../components/Notice";
import { Select } from "../components/Select";
import { useNow } from "../components/useNow";
import { duration, plural } from "../lib/format";
import type { Json } from "../lib/json";
import { printJson } from "../lib/json-print";
import { throttled } from "../lib/throttle";
import { type AuditFilter, NO_FILTER } from "./api";
import { Fact, Outcome } from "./CallPage";
import { type AuditRecord, objectOr, text, type Verification } from "./facts";
import { useConsole, useNews } from "./model";
import { exact } from "./moment";
import { OUTCOME_MEANINGS, OUTCOMES } from "./outcomes";
import { auditHash, hashOf, type Route } from "./route";
import { ViewHead } from "./ViewHead";
import { When } from "./When";

const PAGE = 50;
/** What a record is of, where it is no call. */
const KINDS: Record<string, string> = {
  late_outcome: "Outcome known later",
  approval: "Approval",
  pin: "Definition",
  token: "Token",
  configuration: "Configuration",
  sign_in: "Sign-in",
  refused_request: "Refused request",
  audit: "Audit log",
  store: "Store",
};
const SPANS: [string, string][] = [
  ["", "Any time"],
  ["1h", "Last hour"],
  ["24h", "Last day"],
  ["7d", "Last week"],
];
const RANGE = "range";
const UNITS: Record<string, number> = { h: 3_600_000, d: 86_400_000 };

/** A time as the log writes it: `1h` is so long ago, anything else a time of the reader's own zone. */
function momentOf(text: string): string {
  const span = /^(\d{1,4})([hd])$/.exec(text);
  const at = span ? Date.now() - Number(span[1]) * (UNITS[span[2] as string] as number) : Date.parse(text);
  return Number.isNaN(at) ? "" : new Date(at).toISOString().replace("Z", "+00:00");
}

/** Whether two moments bound it, not a stretch of time that ends now. */
function isRange({ since, until }: AuditFilter): boolean {
  return until !== "" || !SPANS.some(([span]) => span === since);
}

function filterOf({ subject, query }: Route): AuditFilter {
  const told = Object.entries(NO_FILTER).map(([name]) => [name, query[name] ?? ""]);
  return { ...NO_FILTER, ...Object.fromEntries(told), ...(subject !== null && { agent: subject }) };
}

/** What the server is asked for. */
function asked(filter: AuditFilter): AuditFilter {
  return { ...filter, since: momentOf(filter.since), until: momentOf(filter.until) };
}

/** Everything that agents and people did, the newest first. What it is narrowed to stands in the address. */
export function Audit() {
  const console = useConsole();
  const route = console.route.value;
  const filter = useMemo(() => filterOf(route), [route]);
  const [records, setRecords] = useState<AuditRecord[] | null>(null);
  const [next, setNext] = useState<number | null>(null);
  const [newer, setNewer] = useState(0);
  const [follows, setFollows] = useState(false);
  const [problem, setProblem] = useState("");
  const [shown, setShown] = useState<AuditRecord | null>(null);
  const latest = useRef(0);
  const now = useNow(5_000);
  const narrow = (more: Partial<AuditFilter>): void => console.replace(auditHash({ ...filter, ...more }));

  const load = async (before: number | null): Promise<void> => {
    const ticket = ++latest.current;
    try {
      const page = await console.api.audit(asked(filter), before, PAGE);
      if (ticket !== latest.current) return;
      setRecords((old) => (before === null ? page.items : [...(old ?? []), ...page.items]));
      setNext(page.next);
      setProblem("");
      if (before === null) setNewer(0);
    } catch (error) {
      if (ticket === latest.current) setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const refresh = useMemo(() => throttled(() => void load(null), 1_000, 300), [filter]);
  useEffect(() => {
    const timer = setTimeout(() => void load(null), records === null ? 0 : 200);
    return () => clearTimeout(timer);
  }, [filter]);
  useNews(
    (news) => {
      if (news.type !== "call" || (filter.kind !== "" && filter.kind !== "call")) return;
      const fits =
        (filter.agent === "" || filter.agent === news.agent) &&
        news.tool.toLowerCase().includes(filter.toolPart.toLowerCase()) &&
        (filter.outcome === "" || filter.outcome === news.outcome);
      if (!fits || filter.until !== "") return;
      if (follows) refresh();
      else setNewer((count) => count + 1);
    },
    [filter, follows],
  );
  const agents = console.project.value?.agents.map((agent) => agent.name) ?? [];
  const filtered = Object.values(filter).some((value) => value !== "");
  return (
    <div class="view">
      <ViewHead title="Audit" end={<Verify />}>
        What agents called and what people decided, sealed record by record. Whole tasks are under{" "}
        <a href="#/runs">Runs</a>.
      </ViewHead>
      <Card
        title="Records"
        testId="audit"
        end={
          <span class="actions">
            <label class="check">
              <input
                type="checkbox"
                checked={follows}
                data-testid="follow"
                onChange={(event) => {
                  setFollows(event.currentTarget.checked);
                  if (event.currentTarget.checked) void load(null);
                }}
              />
              Follow live
            </label>
            <Export filter={asked(filter)} format="jsonl" />
            <Export filter={asked(filter)} format="csv" />
          </span>
        }
      >
        <form class="filters across" aria-label="Filter" onSubmit={(event) => event.preventDefault()}>
          <label class="filter grows">
            <span class="eyebrow">Text</span>
            <input
              class="input"
              type="search"
              data-search
              placeholder="In names, arguments, results"
              autocomplete="off"
              spellcheck={false}
              value={filter.text}
              onInput={(event) => narrow({ text: event.currentTarget.value })}
            />
          </label>
          <Select
            label="Kind"
            value={filter.kind}
            options={[["", "All kinds"], ["call", "Call"], ...Object.entries(KINDS)]}
            onChange={(kind) => narrow({ kind })}
          />
          <Select
            label="Agent"
            value={filter.agent}
            options={[
              ["", "All agents"],
              ...[...new Set([...agents, ...(filter.agent === "" ? [] : [filter.agent])])].map(
                (name) => [name, name] as const,
              ),
            ]}
            onChange={(agent) => narrow({ agent })}
          />
          <label class="filter">
            <span class="eyebrow">Tool</span>
            <input
              class="input"
              placeholder="Part of a name"
              autocomplete="off"
              spellcheck={false}
              value={filter.toolPart}
              onInput={(event) => narrow({ toolPart: event.currentTarget.value.trim() })}
            />
          </label>
          <Select
            label="Outcome"
            value={filter.outcome}
            options={[["", "All outcomes"], ...OUTCOMES.map((name) => [name, name] as const)]}
            onChange={(outcome) => narrow({ outcome })}
          />
          <Select
            label="Time"
            value={isRange(filter) ? RANGE : filter.since}
            options={[...SPANS, [RANGE, "From … to …"]]}
            onChange={(since) =>
              narrow(since === RANGE ? { since: momentOf("24h"), until: momentOf("0h") } : { since, until: "" })
            }
          />
          {isRange(filter) && (
            <>
              <Moment label="From" value={filter.since} onChange={(since) => narrow({ since })} />
              <Moment label="To" value={filter.until} onChange={(until) => narrow({ until })} />
            </>
          )}
          {filtered && (
            <span class="chips">
              {filter.run !== "" && <Chip label="one run" onRemove={() => narrow({ run: "" })} />}
              <button type="button" class="button small ghost" data-testid="clear" onClick={() => narrow(NO_FILTER)}>
                Clear
              </button>
            </span>
          )}
        </form>
        {problem !== "" && <Callout tone="danger" title={problem} />}
        <div class="newer" role="status">
          {newer > 0 && !follows && (
            <button type="button" class="button small" data-testid="show-newer" onClick={() => void load(null)}>
              <Icon name="up" /> {plural(newer, "newer record")}
            </button>
          )}
        </div>
        {records?.length === 0 && <Empty icon="log" title={filtered ? "Nothing matches" : "No records yet"} />}
        {records !== null && records.length > 0 && <Records records={records} now={now} onShow={setShown} />}
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

function Chip({ label, onRemove }: { label: string; onRemove: () => void }) {
  return (
    <button type="button" class="chip" aria-label={`Remove ${label}`} onClick={onRemove}>
      {label} <Icon name="close" size={12} />
    </button>
  );
}

/** A moment as the reader's own clock says it. */
function Moment({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  const at = Date.parse(momentOf(value));
  const local = Number.isNaN(at) ? "" : new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString();
  return (
    <label class="filter">
      <span class="eyebrow">{label}</span>
      <input
        class="input"
        type="datetime-local"
        step="60"
        value={local.slice(0, 16)}
        onChange={(event) => onChange(momentOf(event.currentTarget.value))}
      />
    </label>
  );
}

/** What a person or a stranger did, in words. */
function deedOf({ kind, operation }: AuditRecord): string {
  if (kind === "late_outcome") return `${operation}: outcome known later`;
  const rest = operation.slice(operation.indexOf(".") + 1).replaceAll("_", " ");
  const name = KINDS[kind] ?? kind;
  return operation.includes(".") ? `${name}: ${rest}` : name;
}

/** Without the beginnings of calls whose end is in the list: each call counts once. */
function eachOnce(newestFirst: AuditRecord[]): AuditRecord[] {
  const ended = new Set(newestFirst.flatMap(({ outcome, callId }) => (outcome === "begun" ? [] : [callId])));
  return newestFirst.filter(({ outcome, callId }) => outcome !== "begun" || !ended.has(callId));
}

function Records({
  records,
  now,
  onShow,
}: {
  records: AuditRecord[];
  now: number;
  onShow: (record: AuditRecord) => void;
}) {
  const console = useConsole();
  const open = (record: AuditRecord): void => {
    if (record.kind === "call" && record.callId !== "") console.go(hashOf("calls", record.callId));
    else onShow(record);
  };
  return (
    <div class="table-wrap">
      <table class="table" data-testid="records">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Who</th>
            <th scope="col">What</th>
            <th scope="col">Outcome</th>
            <th scope="col">Nodes</th>
            <th scope="col" class="number">
              Took
            </th>
          </tr>
        </thead>
        <tbody>
          {eachOnce(records).map((record) => (
            // The button in it is what the keyboard and screen readers use; the rest of the row is its larger target.
            <tr
              key={record.number}
              class="opens"
              data-number={record.number}
              onClick={(event) => {
                if (!(event.target instanceof Element && event.target.closest("a, button"))) open(record);
              }}
            >
              <td data-label="When">
                <button
                  type="button"
                  class="row-button"
                  aria-label={`Record ${record.number}, ${exact(Date.parse(record.timestamp))}`}
                  onClick={() => open(record)}
                >
                  <When at={Date.parse(record.timestamp)} now={now} />
                </button>
              </td>
              <td data-label="Who">
                <Who record={record} />
              </td>
              <th scope="row" data-label="What">
                {record.kind === "call" ? record.operation : deedOf(record)}
              </th>
              <td data-label="Outcome">
                <Outcome outcome={record.outcome} />
                {record.code !== "" && record.outcome !== "waiting" && <span class="quiet small"> {record.code}</span>}
              </td>
              <td data-label={record.kind === "call" ? "Nodes" : "About"} class="targets">
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
      title={`Record ${record.number}: ${record.kind === "call" ? record.operation : deedOf(record)}`}
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
          <Outcome outcome={record.outcome} /> {record.code}{" "}
          {record.kind === "call" && OUTCOME_MEANINGS[record.outcome]}
        </Fact>
        {record.message !== "" && <Fact label="Message">{record.message}</Fact>}
        {record.approval && (
          <Fact label="Approved">
            <a href={hashOf("approvals", record.approval.id)}>{record.approval.id}</a> by {record.approval.by}
          </Fact>
        )}
        {record.kind === "approval" && text(objectOr(record.details), "approvalId") !== "" && (
          <Fact label="Request">
            <a href={hashOf("approvals", text(objectOr(record.details), "approvalId"))}>Look at it in the inbox</a>
          </Fact>
        )}
        {record.targets.length > 0 && (
          <Fact label={record.kind === "call" ? "Nodes" : "About"}>{record.targets.join(", ")}</Fact>
        )}
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
        <p class={`status ${found?.whole ? "good" : found?.whole === false || state === "failed" ? "bad" : "idle"}`}>
          {state === "failed" && "Could not be verified"}
          {found?.breach && brokenAt(found.breach)}
          {found?.whole && "Verified: no record has been changed, removed or reordered"}
          {found && found.whole === null && "Not proved: the records fit together, which anybody can bring about"}
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

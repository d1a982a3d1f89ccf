import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Badge } from "../components/Badge";
import { Card } from "../components/Card";
import { CopyButton } from "../components/CopyButton";
import { Icon, type IconName } from "../components/Icon";
import { JsonText } from "../components/JsonText";
import { JsonTree } from "../components/JsonTree";
import { Callout, Empty } from "../components/Notice";
import { useNow } from "../components/useNow";
import { duration, plural } from "../lib/format";
import { isObject, type Json } from "../lib/json";
import { printJson } from "../lib/json-print";
import { toBase64Url } from "../lib/link";
import { decisionWord } from "./decisions";
import { type Approval, type AuditRecord, at, text } from "./facts";
import { useConsole, useNews } from "./model";
import { OUTCOME_MEANINGS, OUTCOME_TONES } from "./outcomes";
import { auditHash, hashOf } from "./route";
import type { CallStory, NodeChange } from "./stories";
import { When } from "./When";

/** One call, with all that is known about it. */
export function CallPage() {
  const console = useConsole();
  const { subject } = console.route.value;
  const [story, setStory] = useState<CallStory | null>(null);
  const [problem, setProblem] = useState("");
  const load = async (): Promise<void> => {
    try {
      setStory(await console.api.call(subject ?? ""));
      setProblem("");
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  useEffect(() => {
    setStory(null);
    void load();
  }, [subject]);
  useNews(
    (news) => {
      const ends = news.type === "call" && news.callId === subject;
      if (ends || (news.type === "approval" && news.id === story?.approval?.id)) void load();
    },
    [subject, story],
  );
  if (problem !== "" && story === null)
    return (
      <div class="view">
        <Empty icon="log" title="This call is not in the log" testId="no-call">
          <p>{problem}</p>
          <a href="#/audit">Go to the audit log</a>
        </Empty>
      </div>
    );
  if (story === null) return <p class="loading">Loading…</p>;
  return <Story story={story} />;
}

function Story({ story }: { story: CallStory }) {
  const { record, approval } = story;
  const now = useNow(5_000);
  return (
    <div class="view narrow" data-testid="call" data-outcome={record.outcome}>
      <header class="view-head across">
        <div>
          <p class="crumbs">
            <a href="#/audit">Audit</a> › call
          </p>
          <h1 class="call-title">
            <code>{record.operation}</code> <Outcome outcome={record.outcome} />
          </h1>
          <p class="quiet">
            Called by <a href={hashOf("agents", record.agent)}>{record.agent}</a>
            {record.byOperator && " (you, as the operator, through this agent)"},{" "}
            <When at={Date.parse(record.timestamp)} now={now} />
            {TOOK.has(record.outcome) && `, took ${duration(record.durationMs)}`}.{" "}
            {record.outcome !== "waiting" && `${OUTCOME_MEANINGS[record.outcome]}.`}
          </p>
        </div>
        <span class="actions">
          <RunAgain record={record} />
        </span>
      </header>
      {record.outcome === "waiting" && <Waited approval={approval} callId={record.callId} />}
      {record.message !== "" && record.outcome !== "waiting" && (
        <Callout
          tone={record.outcome === "refused" ? "warning" : "danger"}
          title={`${record.outcome === "refused" ? "Refused" : "Failed"}: ${record.code}`}
        >
          <p class="pre">{record.message}</p>
        </Callout>
      )}
      {story.changes !== null && <Changes changes={story.changes} leftOut={story.leftOut} />}
      <div class="two">
        <Body
          title="Request"
          value={record.arguments}
          testId="call-request"
          empty="The arguments were not recorded, or had to make room."
        />
        <Body
          title="Response"
          value={record.result ?? (record.outcome === "waiting" ? undefined : at(record.all, "error"))}
          testId="call-response"
          empty={NO_RESPONSE[record.outcome] ?? "There was no response."}
        />
      </div>
      <Facts story={story} now={now} />
      {story.delegated.length > 0 && <Delegated records={story.delegated} run={record.runId} />}
      <details class="card plain-details">
        <summary class="card-head">The record as it stands in the log</summary>
        <div class="card-body">
          <CopyButton label="Copy record" text={() => printJson(record.all, 2)} />
          <JsonTree value={record.all} label="record" />
        </div>
      </details>
    </div>
  );
}

const TOOK = new Set(["success", "replayed", "failure", "refused", "cancelled"]);

const NO_RESPONSE: Record<string, string> = {
  success: "The result was not recorded, or had to make room.",
  replayed: "The result was not recorded, or had to make room.",
  waiting: "Nothing ran. The client was told that the call needs an approval.",
  cancelled: "The client went away before there was one.",
  begun: "There is none yet.",
  unknown: "Nobody knows: the gateway stopped while the call ran.",
};

/** What became of a call that had to wait: it ran as another call, or never. */
function Waited({ approval, callId }: { approval: Approval | null; callId: string }) {
  if (approval === null)
    return (
      <Callout tone="info" title="It needed an approval" testId="call-waits">
        <p>The request is not in the inbox any more.</p>
      </Callout>
    );
  const { state, effect, id, decidedBy } = approval;
  const ran = approval.callId !== callId ? approval.callId : "";
  const title =
    state === "pending"
      ? "It waits for your approval"
      : ran !== ""
        ? "It was approved, and ran"
        : `It is ${decisionWord(state)}`;
  return (
    <Callout tone={ran !== "" ? "good" : state === "rejected" ? "danger" : "info"} title={title} testId="call-waits">
      {effect !== "" && <p>{state === "pending" ? `It ${effect}.` : `It was to do this: ${effect}.`}</p>}
      <p>
        {state === "pending" && <a href={hashOf("approvals", id)}>Decide about it</a>}
        {state !== "pending" && ran !== "" && <a href={hashOf("calls", ran)}>Look at the call that ran</a>}
        {state !== "pending" && ran === "" && (
          <>
            {decidedBy !== "" && `Decided by ${decidedBy}. `}
            <a href={hashOf("approvals", id)}>Look at the request</a>
          </>
        )}
      </p>
    </Callout>
  );
}

export function Outcome({ outcome }: { outcome: string }) {
  return (
    <Badge
      text={outcome}
      tone={OUTCOME_TONES[outcome] ?? "neutral"}
      meaning={OUTCOME_MEANINGS[outcome] ?? "How it ended"}
    />
  );
}

/** The same call, filled in where it can be looked at before it runs. */
function RunAgain({ record }: { record: AuditRecord }) {
  if (record.kind !== "call" || !isObject(record.arguments)) return null;
  const { versionToken: _, idempotencyKey: __, ...given } = record.arguments;
  const cut = record.arguments.cut === true;
  const args = cut ? "" : `?args=${toBase64Url(printJson(given))}`;
  return (
    <a class="button" href={`${hashOf("try", record.agent, record.operation)}${args}`} data-testid="run-again">
      <Icon name="play" /> Run again in the Playground
    </a>
  );
}

const SIGNS: Record<NodeChange["kind"], [IconName, string]> = {
  added: ["plus", "Added"],
  removed: ["trash", "Removed"],
  moved: ["move", "Moved"],
  reordered: ["compare", "Reordered"],
  changed: ["edit", "Changed"],
};

function Changes({ changes, leftOut }: { changes: NodeChange[]; leftOut: number }) {
  return (
    <Card
      title="What it changed in the tree"
      testId="call-changes"
      end={<span class="meta">{plural(changes.length + leftOut, "node")}</span>}
    >
      {changes.length === 0 ? (
        <p class="card-body quiet">Nothing: the nodes are as they were.</p>
      ) : (
        <ul class="lines changes">
          {changes.map((one, index) => (
            <li key={index} class="item change" data-kind={one.kind}>
              <span class={`mark ${one.kind === "removed" ? "bad" : one.kind === "added" ? "good" : "plain"}`}>
                <Icon name={SIGNS[one.kind][0]} size={14} />
              </span>
              <span class="item-what">
                <span>
                  {SIGNS[one.kind][1]} <strong>{one.name}</strong> <span class="quiet">{place(one)}</span>
                </span>
                {one.properties.length > 0 && (
                  <dl class="before-after">
                    {one.properties.map((property) => (
                      <div key={property.name}>
                        <dt>{property.name}</dt>
                        <dd>
                          {property.old !== undefined && <del>{shortly(property.old)}</del>}
                          {property.old !== undefined && property.new !== undefined && <span> → </span>}
                          {property.new !== undefined && <ins>{shortly(property.new)}</ins>}
                        </dd>
                      </div>
                    ))}
                  </dl>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
      {leftOut > 0 && <p class="card-body quiet">And {plural(leftOut, "more node")}.</p>}
    </Card>
  );
}

function place({ kind, places }: NodeChange): string {
  if (places.length === 0) return "";
  return kind === "moved" ? `from ${places[0]} to ${places.at(-1)}` : `in ${places[0]}`;
}

function shortly(value: Json): string {
  const text = typeof value === "string" ? value : printJson(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

function Body({
  title,
  value,
  testId,
  empty,
}: {
  title: string;
  value: Json | undefined;
  testId: string;
  empty: string;
}) {
  const kept = value !== undefined && value !== null;
  return (
    <Card
      title={title}
      testId={testId}
      end={kept && <CopyButton compact label={`Copy the ${title.toLowerCase()}`} text={() => printJson(value, 2)} />}
    >
      <div class="card-body">{kept ? <JsonText value={value} label={title} /> : <p class="quiet">{empty}</p>}</div>
    </Card>
  );
}

function Facts({ story, now }: { story: CallStory; now: number }) {
  const { record, approval, access } = story;
  const session = text(record.all, "session");
  return (
    <Card title="Access and approval" testId="call-facts">
      <dl class="record-facts card-body">
        {record.chain.length > 1 && (
          <Fact label="Through">
            {record.chain.join(" → ")}, in <a href={hashOf("runs", record.runId)}>this run</a>
          </Fact>
        )}
        {record.parentCallId !== "" && (
          <Fact label="Works for">
            <a href={hashOf("calls", record.parentCallId)}>the call that sent it</a>
          </Fact>
        )}
        <Fact label="Approval">
          {approval ? (
            <>
              <a href={hashOf("approvals", approval.id)}>{decisionWord(approval.state)}</a>
              {approval.decidedBy !== "" && (
                <>
                  {" "}
                  by {approval.decidedBy}
                  {approval.decidedAt !== null && (
                    <>
                      , <When at={approval.decidedAt} now={now} />
                    </>
                  )}
                </>
              )}
              {approval.reason !== "" && <> — “{approval.reason}”</>}
            </>
          ) : record.approval ? (
            <>
              {record.approval.id} by {record.approval.by}
            </>
          ) : (
            "not needed"
          )}
        </Fact>
        {access && (
          <Fact label="Access">
            {access.verdict} by <code>{access.rule}</code>
            {access.approval !== "" && (
              <>
                , asks first: <code>{access.approval}</code>
              </>
            )}{" "}
            <a href={hashOf("agents", record.agent)}>All of its access</a>
            {access.ancestor !== "" && <span class="quiet"> (a rule of {access.ancestor}, who sent it)</span>}
            {!access.same && <span class="quiet"> (as it is now; it has changed since the call)</span>}
          </Fact>
        )}
        {record.targets.length > 0 && <Fact label="Nodes">{record.targets.join(", ")}</Fact>}
        {session !== "" && session !== record.agent && <Fact label="Session">{session}</Fact>}
        <Fact label="Call id">
          <code>{record.callId}</code>{" "}
          <a href={auditHash({ agent: record.agent, toolPart: record.operation })}>Calls like it</a>
        </Fact>
      </dl>
    </Card>
  );
}

function Delegated({ records, run }: { records: AuditRecord[]; run: string }) {
  return (
    <Card
      title="What other agents did for it"
      testId="call-delegated"
      end={<a href={hashOf("runs", run)}>As a timeline</a>}
    >
      <ul class="lines">
        {records.map((one) => (
          <li key={one.number}>
            <a class="item" href={hashOf("calls", one.callId)}>
              <span class="item-what">
                <code>{one.operation}</code> <span class="quiet">by {one.agent}</span>
              </span>
              <Outcome outcome={one.outcome} />
              <span class="meta">{duration(one.durationMs)}</span>
            </a>
          </li>
        ))}
      </ul>
    </Card>
  );
}

export function Fact({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Badge } from "../components/Badge";
import { CopyButton } from "../components/CopyButton";
import { Diff } from "../components/Diff";
import { Icon } from "../components/Icon";
import { JsonText } from "../components/JsonText";
import { JsonTree } from "../components/JsonTree";
import { Callout, Empty } from "../components/Notice";
import { useNow } from "../components/useNow";
import { ago, plural } from "../lib/format";
import { printJson } from "../lib/json-print";
import type { Decision as DecisionBody } from "./api-types";
import { Outcome } from "./CallPage";
import { DECISION_TONES, decisionWord } from "./decisions";
import { type Approval, type Pin, text } from "./facts";
import { useConsole } from "./model";
import { exact, until } from "./moment";
import { actorOf, askerOf } from "./news";
import { hashOf } from "./route";
import type { CallStory } from "./stories";
import { ViewHead } from "./ViewHead";

const LASTING = [
  ["15m", "15 minutes"],
  ["1h", "1 hour"],
  ["8h", "8 hours"],
] as const;
const MOST_DECIDED = 100;
/** Milliseconds for which keys do not count for a call that came up by itself: nobody can have read it yet. */
const UNREAD = 600;

/** The inbox: calls that wait for a person, and what became of the others. */
export function Approvals() {
  const console = useConsole();
  const all = console.approvals.value;
  const { subject } = console.route.value;
  const now = useNow(5_000);
  const before = useRef<string | null>(null);
  const readFrom = useRef(0);
  if (all === null) return <p class="loading">Loading…</p>;
  const pending = all.filter((one) => one.state === "pending");
  const standing = all.filter(stands);
  const decided = all
    .filter((one) => one.state !== "pending" && !stands(one))
    .sort((a, b) => (b.decidedAt ?? b.requestedAt) - (a.decidedAt ?? a.requestedAt));
  const chosen =
    all.find((one) => one.id === subject) ?? (subject === null ? (pending[0] ?? standing[0] ?? decided[0]) : undefined);
  const shown = subject === null ? (chosen?.id ?? "") : null;
  if (shown === null) readFrom.current = 0;
  else if (before.current !== null && before.current !== shown) readFrom.current = performance.now() + UNREAD;
  before.current = shown;
  return (
    <div class="split">
      <section class="split-list" aria-label="Inbox">
        <ViewHead title="Approvals" end={<span class="meta">{plural(pending.length, "call")} waiting</span>}>
          Calls that need your yes before they run. <NotifyButton />
        </ViewHead>
        {pending.length === 0 && (
          <Empty icon="check" title="Nothing to approve" testId="nothing-waits">
            <p>Calls that need approval show up here.</p>
          </Empty>
        )}
        <Entries entries={pending} chosen={chosen} now={now} />
        {standing.length > 0 && <h2 class="split-head">Standing</h2>}
        <Entries entries={standing} chosen={chosen} now={now} />
        {decided.length > 0 && <h2 class="split-head">Decided</h2>}
        <Entries entries={decided.slice(0, MOST_DECIDED)} chosen={chosen} now={now} />
      </section>
      <section class="split-detail" aria-label="The call">
        {chosen ? (
          <Detail key={chosen.id} approval={chosen} now={now} readFrom={readFrom.current} />
        ) : (
          subject !== null && (
            <Empty icon="inbox" title="This call is not in the inbox">
              <a href={hashOf("approvals")}>Back to the inbox</a>
            </Empty>
          )
        )}
      </section>
    </div>
  );
}

function Entries({ entries, chosen, now }: { entries: Approval[]; chosen: Approval | undefined; now: number }) {
  return (
    <ul class="entries">
      {entries.map((one) => (
        <li key={one.id} class={stands(one) ? "entry-and-button" : undefined}>
          <a
            class="entry"
            href={hashOf("approvals", one.id)}
            aria-current={one === chosen ? "true" : undefined}
            data-testid="approval"
            data-state={one.state}
          >
            <span class="entry-head">
              <code class="entry-name">{one.tool}</code>
              <Badge
                text={decisionWord(one.state)}
                tone={DECISION_TONES[one.state] ?? "neutral"}
                meaning="State of the request"
              />
            </span>
            {one.effect !== "" && <span class="clamp">{one.effect}</span>}
            <span class="quiet">
              {actorOf(one)} · {stands(one) ? until(one.expiresAt, now) : ago(one.requestedAt, now)}
            </span>
          </a>
          {stands(one) && <Revoke approval={one} />}
        </li>
      ))}
    </ul>
  );
}

function Detail({ approval, now, readFrom }: { approval: Approval; now: number; readFrom: number }) {
  const console = useConsole();
  const pin = pinOf(approval, console.pins.value ?? []);
  const description = text(approval.definition, "description");
  return (
    <article class="stack" data-testid="approval-detail" data-state={approval.state}>
      <header>
        <h2 class="call-line">
          <span class="quiet">{titleOf(approval)}</span> <code>{approval.tool}</code>
        </h2>
        <p class="quiet">
          Because of the rule <code>{approval.rule}</code> · asked {exact(approval.requestedAt)}
          {approval.state === "pending" && ` · ${until(approval.expiresAt, now)}`}
        </p>
      </header>
      {approval.effect !== "" && (
        <section class="card" aria-label="Effect">
          <div class="card-head">
            <h3>{didRun(approval) ? "What it changed" : "What it would change"}</h3>
          </div>
          <p class="card-body effect" data-testid="approval-effect">
            {approval.effect}
          </p>
        </section>
      )}
      <Chain agents={approval.chain} />
      {approval.sends && (
        <section class="card" aria-label="Request">
          <div class="card-head">
            <h3>{didRun(approval) ? "What was sent" : "What will be sent"}</h3>
            <span class="meta">with the arguments below</span>
          </div>
          <p class="card-body outgoing mono" data-testid="approval-sends">
            <strong>{approval.sends.method}</strong> <span>{approval.sends.url}</span>
          </p>
        </section>
      )}
      {approval.earlier && (
        <Callout tone="danger" title="It may have run already" testId="approval-earlier">
          <p>
            The gateway stopped while the same call was under way, begun at{" "}
            {exact(Date.parse(approval.earlier.begunAt))}. Check whether it had its effect before you approve it again.{" "}
            <a href={hashOf("calls", approval.earlier.callId)}>Look at that call</a>.
          </p>
        </Callout>
      )}
      {approval.replaces !== "" && (
        <Callout tone="warning" title="It was approved before, with another effect">
          <p>
            The tree has changed since, so the call asks again:{" "}
            <a href={hashOf("approvals", approval.replaces)}>the earlier request</a>.
          </p>
        </Callout>
      )}
      {approval.state !== "pending" && <Decided approval={approval} now={now} />}
      {approval.callId !== "" && <Outcomes key={approval.callId} approval={approval} />}
      <section class="card" aria-label="Arguments">
        <div class="card-head">
          <h3>The exact arguments</h3>
          <CopyButton compact label="Copy the arguments" text={() => printJson(approval.arguments, 2)} />
        </div>
        <div class="card-body" data-testid="approval-arguments">
          <JsonText value={approval.arguments} label="Arguments of the call" />
        </div>
      </section>
      {approval.state === "pending" && <Decision approval={approval} readFrom={readFrom} />}
      {pin && <PinCard pin={pin} approval={approval} />}
      <section class="card" aria-label="Definition">
        <div class="card-head">
          <h3>The tool's definition</h3>
          <span class="meta mono" title={approval.definitionHash}>
            {approval.definitionHash.slice(0, 16)}
          </span>
        </div>
        <div class="card-body">
          {description && <p class="about">{description}</p>}
          <details class="plain-details">
            <summary>All of it</summary>
            <JsonTree value={approval.definition} label="definition" />
          </details>
        </div>
      </section>
    </article>
  );
}

/** Keys count from `readFrom` on, a moment of the page's own clock. */
function Decision({ approval, readFrom }: { approval: Approval; readFrom: number }) {
  const console = useConsole();
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  // State comes a moment after the click; a second click must not get in between.
  const sent = useRef(false);
  const decide = async (approve: boolean, lasts?: (typeof LASTING)[number]): Promise<void> => {
    if (sent.current) return;
    sent.current = true;
    setBusy(true);
    setProblem("");
    try {
      const decision: DecisionBody = { approve, reason: reason.trim(), ...(lasts && { for: lasts[0] }) };
      console.put(await console.api.decide(approval.id, decision));
      console.say(
        approve
          ? `Approved: ${approval.agent} may run ${approval.tool} ${lasts ? `for ${lasts[1]}` : "once"}`
          : `Rejected: ${approval.tool} of ${approval.agent}`,
      );
    } catch (error) {
      sent.current = false;
      setProblem(error instanceof Error ? error.message : String(error));
      await console.loadWaiting();
    } finally {
      setBusy(false);
    }
  };
  // Before the page is painted: a key that is pressed as the buttons appear counts, and never for the call before.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (!console.settings.singleKeys.peek() || event.defaultPrevented || event.repeat || isTyping(event)) return;
      const key = event.key.toLowerCase();
      if (key !== "a" && key !== "r") return;
      event.preventDefault();
      if (performance.now() >= readFrom) void decide(key === "a");
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  });
  return (
    <form class="card decision" aria-label="Decision" onSubmit={(event) => event.preventDefault()}>
      <label class="field">
        <span class="field-head">Reason (shown to the agent)</span>
        <input
          class="input"
          value={reason}
          maxLength={500}
          placeholder="Optional"
          data-testid="reason"
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </label>
      <div class="run-row">
        <button
          type="button"
          class="button primary"
          data-testid="approve"
          aria-disabled={busy ? "true" : undefined}
          onClick={() => void decide(true)}
        >
          <Icon name="check" /> Approve once <kbd class="wide-only">A</kbd>
        </button>
        <button
          type="button"
          class="button"
          data-testid="reject"
          aria-disabled={busy ? "true" : undefined}
          onClick={() => void decide(false)}
        >
          <Icon name="close" /> Reject <kbd class="wide-only">R</kbd>
        </button>
      </div>
      <fieldset class="lasting">
        <legend>
          Or approve every call of <code>{approval.tool}</code> by {approval.agent}, whatever its arguments, for
        </legend>
        {LASTING.map((lasts) => (
          <button
            key={lasts[0]}
            type="button"
            class="button small"
            data-testid={`approve-${lasts[0]}`}
            aria-label={`Approve for ${lasts[1]}`}
            aria-disabled={busy ? "true" : undefined}
            onClick={() => void decide(true, lasts)}
          >
            {lasts[1]}
          </button>
        ))}
      </fieldset>
      {problem !== "" && (
        <p class="field-problem" role="alert">
          <Icon name="warning" size={14} />
          <span>{problem}</span>
        </p>
      )}
    </form>
  );
}

function Decided({ approval, now }: { approval: Approval; now: number }) {
  const heading = useRef<HTMLParagraphElement>(null);
  // The buttons that had the focus are gone.
  useEffect(() => {
    if (document.activeElement === document.body) heading.current?.focus();
  }, []);
  return (
    <div class={`verdict card ${approval.state}`} data-testid="decided">
      <p ref={heading} tabIndex={-1}>
        <Badge
          text={decisionWord(approval.state)}
          tone={DECISION_TONES[approval.state] ?? "neutral"}
          meaning="State of the request"
        />{" "}
        {approval.decidedAt !== null && (
          <span>
            by {approval.decidedBy || "nobody"}, {exact(approval.decidedAt)}
          </span>
        )}
      </p>
      {approval.reason !== "" && <p>“{approval.reason}”</p>}
      {stands(approval) ? (
        <p>
          Every call of <code>{approval.tool}</code> by {approval.agent} goes through until{" "}
          <strong>{exact(approval.expiresAt)}</strong> ({until(approval.expiresAt, now)}), whatever its arguments; used{" "}
          {plural(approval.uses, "time")} so far.
        </p>
      ) : (
        approval.state === "approved" && (
          <p class="quiet">
            It lets this very call through once. A client that waits goes on by itself; any other has to call again.
          </p>
        )
      )}
      {approval.state === "unknown" && (
        <p>The gateway stopped while the call ran: it may have had its effect. Look before it is repeated.</p>
      )}
      {approval.state === "approved" && <Revoke approval={approval} />}
    </div>
  );
}

/** What came of the call that was let through. */
function Outcomes({ approval }: { approval: Approval }) {
  const console = useConsole();
  const [story, setStory] = useState<CallStory | null>(null);
  useEffect(() => {
    let over = false;
    console.api.call(approval.callId).then(
      (found) => !over && setStory(found),
      () => undefined,
    );
    return () => {
      over = true;
    };
  }, [approval.callId, approval.state]);
  if (story === null) return null;
  const { record, changes } = story;
  return (
    <section class="card" aria-label="Result" data-testid="approval-result">
      <div class="card-head">
        <h3>
          What came of it <Outcome outcome={record.outcome} />
        </h3>
        <a href={hashOf("calls", approval.callId)}>Look at the call</a>
      </div>
      <div class="card-body stack">
        {changes !== null && changes.length > 0 && (
          <p>
            {plural(changes.length + story.leftOut, "node")} changed:{" "}
            {changes
              .slice(0, 3)
              .map((one) => one.name)
              .join(", ")}
          </p>
        )}
        {record.message !== "" && <p class="pre">{record.message}</p>}
        {record.result !== undefined && record.result !== null ? (
          <JsonText value={record.result} label="Result" />
        ) : (
          record.message === "" && <p class="quiet">What it answered was not recorded.</p>
        )}
      </div>
    </section>
  );
}

/** Asks the browser, once a person wants it, to tell of calls that wait while the page is in the background. */
function NotifyButton() {
  const console = useConsole();
  const state = console.notices.value;
  if (state === "on") return <span data-testid="notices-on">This browser tells you of new ones.</span>;
  if (state === "unavailable") return null;
  if (state === "denied")
    return <span data-testid="notices-denied">To be notified, allow notifications for this page in your browser.</span>;
  return (
    <button type="button" class="link-button" data-testid="notify" onClick={() => void console.askForNotices()}>
      Notify me
    </button>
  );
}

function titleOf(approval: Approval): string {
  const { state, agent, byOperator, decidedBy } = approval;
  if (state === "pending") return askerOf(approval);
  if (state === "rejected") return `${decidedBy || "Somebody"} did not let ${agent} run`;
  if (state === "used" || state === "claimed") return `${agent} ran`;
  if (state === "approved") return `${agent} may run`;
  return byOperator ? askerOf(approval) : `${agent} wanted to run`;
}

function Revoke({ approval }: { approval: Approval }) {
  const console = useConsole();
  const revoke = async (): Promise<void> => {
    try {
      console.put(await console.api.revoke(approval.id));
      console.say(`Revoked: ${approval.agent} must ask again for ${approval.tool}`);
    } catch (error) {
      console.say(error instanceof Error ? error.message : String(error));
      await console.loadWaiting();
    }
  };
  return (
    <button
      type="button"
      class="button small"
      data-testid="revoke"
      aria-label={`Revoke ${approval.tool} of ${approval.agent}`}
      onClick={() => void revoke()}
    >
      Revoke
    </button>
  );
}

/** The agents that a request came through; one that called by itself needs no saying. */
function Chain({ agents }: { agents: string[] }) {
  if (agents.length < 2) return null;
  return (
    <p data-testid="chain">
      <span class="quiet">Asked through</span> {agents.join(" → ")}
    </p>
  );
}

function isTyping({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  const types = target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
  return types || ctrlKey || metaKey || altKey || document.querySelector("dialog[open]") !== null;
}

function didRun({ state }: Approval): boolean {
  return state === "used" || state === "claimed" || state === "unknown";
}

/** Whether it lets calls through for a while. */
function stands(approval: Approval): boolean {
  return approval.state === "approved" && approval.for !== null;
}

function PinCard({ pin, approval }: { pin: Pin; approval: Approval }) {
  return (
    <section class="card" aria-label="Pin" data-testid="approval-pin">
      <div class="card-head">
        <h3>Compared with the accepted definition</h3>
      </div>
      <div class="card-body">
        {pin.state !== "pinned" ? (
          <>
            <Callout tone="danger" title="What the server offers now is not what was accepted">
              <p>
                The tool is kept back until someone accepts the definition under <a href={hashOf("sources")}>Sources</a>
                .
              </p>
            </Callout>
            <Diff text={pin.diff} label="What the server changed" />
          </>
        ) : (
          <p class="quiet">
            {pin.hash === approval.definitionHash
              ? "Unchanged: it is the definition"
              : "The server now offers the definition"}{" "}
            accepted by {pin.pinnedBy} on {exact(pin.pinnedAt)} (<code>{pin.hash.slice(0, 16)}</code>).
          </p>
        )}
      </div>
    </section>
  );
}

/** The pin of the tool that is asked for, if its server is one whose definitions are pinned. */
function pinOf(approval: Approval, pins: Pin[]): Pin | undefined {
  const source = text(approval.definition, "source");
  const own = pins.filter((pin) => pin.server === source);
  return (
    own.find((pin) => pin.hash === approval.definitionHash) ??
    own.find((pin) => approval.tool === `${pin.server}_${pin.tool}`)
  );
}

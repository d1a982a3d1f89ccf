import { useRef, useState } from "preact/hooks";
import { Badge } from "../components/Badge";
import { Card } from "../components/Card";
import { CopyButton } from "../components/CopyButton";
import { Diff } from "../components/Diff";
import { Icon } from "../components/Icon";
import { Callout, Empty } from "../components/Notice";
import { plural } from "../lib/format";
import type { Pin } from "./facts";
import { useConsole } from "./model";
import { exact } from "./moment";

/** The standings of a definition that is kept back, as the page words them. */
const KEPT_BACK = [
  { state: "changed", testId: "quarantined", badge: "quarantined", tone: "danger", title: "in quarantine" },
  {
    state: "pending",
    testId: "pending-pin",
    badge: "waiting",
    tone: "warning",
    title: "waiting for a first acceptance",
  },
  { state: "refused", testId: "refused-pin", badge: "refused", tone: "neutral", title: "refused" },
] as const;
type KeptBack = (typeof KEPT_BACK)[number];

/** Definitions of foreign tools that were accepted, and those that wait for it. */
export function Pins() {
  const console = useConsole();
  const pins = console.pins.value;
  if (pins === null) return <p class="loading">Loading…</p>;
  const accepted = pins.filter((pin) => pin.state === "pinned");
  return (
    <div class="view">
      <header class="view-head">
        <h1>Pins</h1>
        <p class="quiet">
          A tool of an MCP server is offered only with the definition that was accepted. One that is new, or changes, is
          kept back until you have looked at it.
        </p>
      </header>
      {pins.length === 0 && (
        <Empty icon="pin" title="No pins yet">
          <p>Every tool of an MCP server gets one when it is first seen.</p>
        </Empty>
      )}
      {KEPT_BACK.map((kept) => {
        const found = pins.filter((pin) => pin.state === kept.state);
        return (
          found.length > 0 && (
            <section key={kept.state} class="stack" aria-label={`Definitions ${kept.title}`}>
              <h2 class="section-title">
                {plural(found.length, "definition")} {kept.title}
              </h2>
              {found.map((pin) => (
                <Definition key={`${pin.server}/${pin.tool} ${pin.seenHash}`} pin={pin} kept={kept} />
              ))}
            </section>
          )
        );
      })}
      {accepted.length > 0 && (
        <Card title={plural(accepted.length, "accepted definition")}>
          <div class="table-wrap">
            <table class="table" data-testid="pins">
              <thead>
                <tr>
                  <th scope="col">Tool</th>
                  <th scope="col">Server</th>
                  <th scope="col">Accepted</th>
                  <th scope="col">By</th>
                  <th scope="col">Hash</th>
                </tr>
              </thead>
              <tbody>
                {accepted.map((pin) => (
                  <tr key={`${pin.server}/${pin.tool}`}>
                    <th scope="row" data-label="Tool">
                      {pin.tool}
                    </th>
                    <td data-label="Server">{pin.server}</td>
                    <td data-label="Accepted">{exact(pin.pinnedAt)}</td>
                    <td data-label="By">{pin.pinnedBy}</td>
                    <td data-label="Hash">
                      <span class="hash">
                        <code title={pin.hash}>{pin.hash.slice(0, 16)}</code>
                        <CopyButton compact label={`Copy the hash of ${pin.tool}`} text={() => pin.hash} />
                      </span>
                    </td>
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

function Definition({ pin, kept }: { pin: Pin; kept: KeptBack }) {
  const console = useConsole();
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const sent = useRef(false);
  const decide = async (verb: "accept" | "refuse"): Promise<void> => {
    if (sent.current || pin.seenHash === null) return;
    sent.current = true;
    setBusy(true);
    setProblem("");
    try {
      // The hash that is on screen: if the server has changed it again, this is refused.
      await console.api.decidePin(pin, { [verb]: pin.seenHash });
      console.say(`${verb === "accept" ? "Accepted" : "Refused"} ${pin.server}/${pin.tool}`);
    } catch (error) {
      sent.current = false;
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
    await console.loadWaiting();
  };
  return (
    <section class="card" aria-label={`${pin.server}/${pin.tool}`} data-testid={kept.testId}>
      <div class="card-head">
        <h3>
          <code>{pin.tool}</code> <span class="quiet">of {pin.server}</span>
        </h3>
        <Badge text={kept.badge} tone={kept.tone} meaning="No agent can call it" />
      </div>
      <div class="card-body stack">
        <p class="quiet">
          {pin.hash === "" ? "Nothing was accepted yet" : `Accepted by ${pin.pinnedBy} on ${exact(pin.pinnedAt)}`}
          {pin.seenAt !== null && `; the server has said this since ${exact(pin.seenAt)}`}
          {pin.state === "refused" && `; refused by ${pin.refusedBy}`}.
        </p>
        {pin.remarks.length > 0 && (
          <Callout tone="warning" title="Worth a second look" testId="remarks">
            <ul>
              {pin.remarks.map((remark) => (
                <li key={remark}>{remark}</li>
              ))}
            </ul>
          </Callout>
        )}
        <Diff text={pin.diff} label={`What ${pin.server} says of ${pin.tool}`} />
        {problem !== "" && (
          <p class="field-problem" role="alert">
            <Icon name="warning" size={14} />
            <span>{problem}</span>
          </p>
        )}
        <div class="run-row">
          <button
            type="button"
            class="button primary"
            aria-disabled={busy ? "true" : undefined}
            data-testid="accept"
            onClick={() => void decide("accept")}
          >
            <Icon name="shield" /> Accept this definition
          </button>
          {pin.state !== "refused" && (
            <button
              type="button"
              class="button"
              aria-disabled={busy ? "true" : undefined}
              data-testid="refuse"
              onClick={() => void decide("refuse")}
            >
              <Icon name="close" /> Refuse
            </button>
          )}
          <span class="meta mono" title={pin.seenHash ?? ""} data-testid="seen-hash">
            {pin.seenHash?.slice(0, 16)}
          </span>
        </div>
      </div>
    </section>
  );
}

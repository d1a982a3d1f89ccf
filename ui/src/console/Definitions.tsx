import { useRef, useState } from "preact/hooks";
import { Badge } from "../components/Badge";
import { Diff } from "../components/Diff";
import { Icon } from "../components/Icon";
import { Callout } from "../components/Notice";
import { plural } from "../lib/format";
import type { Pin } from "./facts";
import { useConsole } from "./model";
import { exact } from "./moment";

/** The standings of a definition that is kept back, as the page words them. */
const KEPT_BACK = [
  {
    state: "changed",
    testId: "quarantined",
    badge: "changed",
    tone: "danger",
    title: "changed since you accepted them",
  },
  {
    state: "pending",
    testId: "pending-pin",
    badge: "waiting",
    tone: "warning",
    title: "new, to be reviewed",
  },
  { state: "refused", testId: "refused-pin", badge: "refused", tone: "neutral", title: "refused" },
] as const;
type KeptBack = (typeof KEPT_BACK)[number];

/** Definitions of MCP tools that wait for a person, of one server or of all. */
export function Definitions({ server }: { server?: string }) {
  const pins = (useConsole().pins.value ?? []).filter((pin) => server === undefined || pin.server === server);
  return (
    <>
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
    </>
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
        <Badge text={kept.badge} tone={kept.tone} meaning="Blocked: no agent can call it until you decide" />
      </div>
      <div class="card-body stack">
        <p class="quiet">
          {pin.hash === "" ? "Not accepted yet" : `Accepted by ${pin.pinnedBy} on ${exact(pin.pinnedAt)}`}
          {pin.seenAt !== null && `; the server has sent this since ${exact(pin.seenAt)}`}
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

import { useRef, useState } from "preact/hooks";
import { Badge } from "../components/Badge";
import { Card } from "../components/Card";
import { CopyButton } from "../components/CopyButton";
import { Diff } from "../components/Diff";
import { Icon } from "../components/Icon";
import { Empty } from "../components/Notice";
import { plural } from "../lib/format";
import type { Pin } from "./facts";
import { useConsole } from "./model";
import { exact } from "./moment";

/** Definitions of foreign tools that were accepted, and those that changed since. */
export function Pins() {
  const console = useConsole();
  const pins = console.pins.value;
  if (pins === null) return <p class="loading">Loading…</p>;
  const changed = pins.filter((pin) => pin.changed);
  return (
    <div class="view">
      <header class="view-head">
        <h1>Pins</h1>
        <p class="quiet">A tool of an MCP server is offered only with the definition that was accepted. One that changes is kept back until you have looked at it.</p>
      </header>
      {pins.length === 0 && (
        <Empty icon="pin" title="No pins yet">
          <p>Every tool of an MCP server gets one when it is first seen.</p>
        </Empty>
      )}
      {changed.length > 0 && <h2 class="section-title">{plural(changed.length, "definition")} in quarantine</h2>}
      {changed.map((pin) => (
        <Quarantined key={`${pin.server}/${pin.tool} ${pin.seenHash}`} pin={pin} />
      ))}
      {pins.length > changed.length && (
        <Card title={`${plural(pins.length - changed.length, "accepted definition")}`}>
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
                {pins
                  .filter((pin) => !pin.changed)
                  .map((pin) => (
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

function Quarantined({ pin }: { pin: Pin }) {
  const console = useConsole();
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const sent = useRef(false);
  const accept = async (): Promise<void> => {
    if (sent.current || pin.seenHash === null) return;
    sent.current = true;
    setBusy(true);
    setProblem("");
    try {
      // The hash that is on screen: if the server has changed it again, this is refused.
      await console.api.accept(pin, pin.seenHash);
      console.say(`Accepted ${pin.server}/${pin.tool}`);
    } catch (error) {
      sent.current = false;
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
    await console.loadWaiting();
  };
  return (
    <section class="card" aria-label={`${pin.server}/${pin.tool}`} data-testid="quarantined">
      <div class="card-head">
        <h3>
          <code>{pin.tool}</code> <span class="quiet">of {pin.server}</span>
        </h3>
        <Badge text="quarantined" tone="danger" meaning="No agent can call it" />
      </div>
      <div class="card-body">
        <p class="quiet">
          Accepted by {pin.pinnedBy} on {exact(pin.pinnedAt)}
          {pin.seenAt !== null && `; the server has said something else since ${exact(pin.seenAt)}`}.
        </p>
        <Diff text={pin.diff} label={`What ${pin.server} changed in ${pin.tool}`} />
        {problem !== "" && (
          <p class="field-problem" role="alert">
            <Icon name="warning" size={14} />
            <span>{problem}</span>
          </p>
        )}
        <div class="run-row">
          <button type="button" class="button primary" aria-disabled={busy ? "true" : undefined} data-testid="accept" onClick={() => void accept()}>
            <Icon name="shield" /> Accept this definition
          </button>
          <span class="meta mono" title={pin.seenHash ?? ""} data-testid="seen-hash">
            {pin.seenHash?.slice(0, 16)}
          </span>
        </div>
      </div>
    </section>
  );
}

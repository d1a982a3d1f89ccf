import { Dialog } from "../components/Dialog";
import { Icon } from "../components/Icon";
import { Empty } from "../components/Notice";
import { ago, duration } from "../lib/format";
import type { Call } from "../lib/history";
import { printJson } from "../lib/json-print";

const OUTCOMES = { ok: ["good", "Done"], error: ["bad", "Failed"], cancelled: ["idle", "Cancelled"] } as const;

interface Props {
  calls: Call[];
  onRestore: (call: Call) => void;
  /** Null where calls cannot be made. */
  onRerun: ((call: Call) => void) | null;
  onClear: () => void;
  onClose: () => void;
}

/** The calls made from this browser, newest first. */
export function HistoryDialog({ calls, onRestore, onRerun, onClear, onClose }: Props) {
  return (
    <Dialog
      title="History"
      kind="sheet"
      testId="history"
      onClose={onClose}
      footer={
        calls.length > 0 && (
          <>
            <span class="quiet">Kept in this browser only, without results.</span>
            <button type="button" class="button small" onClick={onClear}>
              <Icon name="trash" />
              Clear history
            </button>
          </>
        )
      }
    >
      {calls.length === 0 ? (
        <Empty icon="clock" title="No calls yet">
          <p>Calls you run are listed here, to be restored or run again.</p>
        </Empty>
      ) : (
        <ol class="calls">
          {calls.map((call) => (
            <CallRow key={call.id} call={call} onRestore={onRestore} onRerun={onRerun} />
          ))}
        </ol>
      )}
    </Dialog>
  );
}

function CallRow({ call, onRestore, onRerun }: Pick<Props, "onRestore" | "onRerun"> & { call: Call }) {
  const [tone, word] = OUTCOMES[call.outcome];
  return (
    <li class="call" data-testid="history-entry">
      <div class="call-head">
        <span class="call-tool">{call.tool}</span>
        <span class={`status ${tone}`}>{word}</span>
      </div>
      <code class="call-args">{printJson(call.args).slice(0, 160)}</code>
      <div class="call-foot">
        <span class="meta">
          {ago(call.at, Date.now())} · {duration(call.took)}
        </span>
        <button type="button" class="button small" aria-label={`Restore ${call.tool}`} onClick={() => onRestore(call)}>
          Restore
        </button>
        {onRerun && (
          <button
            type="button"
            class="button small"
            aria-label={`Run again: ${call.tool}`}
            onClick={() => onRerun(call)}
          >
            Run again
          </button>
        )}
      </div>
    </li>
  );
}

import { isDestructive } from "../components/Badge";
import { Dialog } from "../components/Dialog";
import { JsonText } from "../components/JsonText";
import { type Opened, useBench } from "./bench";

/** Asks once more before a tool that can do harm. */
export function ConfirmDialog({ opened }: { opened: Opened }) {
  const bench = useBench();
  const { tool, draft } = opened;
  const back = (): void => {
    bench.confirming.value = null;
  };
  return (
    <Dialog
      title={`Run ${tool.name}?`}
      tone="danger"
      testId="confirm"
      onClose={back}
      footer={
        <>
          <button type="button" class="button" data-autofocus onClick={back}>
            Back
          </button>
          <button
            type="button"
            class={`button ${isDestructive(tool) ? "danger" : "primary"}`}
            onClick={() => bench.confirmed(opened)}
          >
            Run it
          </button>
        </>
      }
    >
      {isDestructive(tool) && <p>This tool is marked destructive: it may delete or overwrite something for good.</p>}
      {tool.requiresApproval && <p>This tool needs approval: by running it you say that you agree to what it does.</p>}
      <p class="eyebrow">Arguments</p>
      <JsonText value={draft.value.value} label="Arguments to send" />
    </Dialog>
  );
}

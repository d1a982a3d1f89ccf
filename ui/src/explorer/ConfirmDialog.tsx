import { isDestructive } from "../components/Badge";
import { Dialog } from "../components/Dialog";
import { JsonText } from "../components/JsonText";
import { useExplorer } from "./model";

/** Asks once more before a tool that can do harm. */
export function ConfirmDialog({ tool: name, onClose }: { tool: string; onClose: () => void }) {
  const explorer = useExplorer();
  const opened = explorer.catalog.ready(name);
  if (!opened) return null;
  const { tool, draft } = opened;
  return (
    <Dialog
      title={`Run ${name}?`}
      tone="danger"
      testId="confirm"
      onClose={onClose}
      footer={
        <>
          <button type="button" class="button" data-autofocus onClick={onClose}>
            Back
          </button>
          <button type="button" class={`button ${isDestructive(tool) ? "danger" : "primary"}`} onClick={() => explorer.confirmed(name)}>
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

import { Dialog } from "../components/Dialog";
import { SHORTCUTS } from "./keys";
import { useExplorer } from "./model";

export function HelpDialog({ onClose }: { onClose: () => void }) {
  const { singleKeys } = useExplorer().settings;
  return (
    <Dialog title="Keyboard" testId="help" onClose={onClose}>
      <dl class="keys-list">
        {SHORTCUTS.map(([keys, action]) => (
          <div key={action}>
            <dt>{action}</dt>
            <dd>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input type="checkbox" checked={singleKeys.value} onChange={(event) => (singleKeys.value = event.currentTarget.checked)} />
        <span>
          Use the single keys <kbd>/</kbd> and <kbd>?</kbd>
        </span>
      </label>
    </Dialog>
  );
}

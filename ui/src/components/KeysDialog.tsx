import type { Signal } from "@preact/signals";
import { Dialog } from "./Dialog";

interface Props {
  shortcuts: readonly [string[], string][];
  /** Whether keys act alone. */
  singleKeys: Signal<boolean>;
  onClose: () => void;
}

export function KeysDialog({ shortcuts, singleKeys, onClose }: Props) {
  return (
    <Dialog title="Keyboard" testId="help" onClose={onClose}>
      <dl class="keys-list">
        {shortcuts.map(([keys, action]) => (
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
        <input
          type="checkbox"
          checked={singleKeys.value}
          onChange={(event) => (singleKeys.value = event.currentTarget.checked)}
        />
        <span>
          Use the single keys <kbd>/</kbd> and <kbd>?</kbd>
        </span>
      </label>
    </Dialog>
  );
}

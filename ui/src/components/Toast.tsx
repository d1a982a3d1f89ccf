import type { Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** Something that can be done about the news while it is there. */
export interface ToastAction {
  label: string;
  run: () => void;
}

/** Short news that goes by itself. */
export function Toast({ toast, action }: { toast: Signal<string>; action?: Signal<ToastAction | null> }) {
  const message = toast.value;
  const offered = action?.value ?? null;
  useEffect(() => {
    if (message === "") return;
    const timer = setTimeout(() => (toast.value = ""), offered ? 12_000 : 5_000);
    return () => clearTimeout(timer);
  }, [message, offered]);
  return (
    <div class="toasts" role="status" data-testid="toast">
      {message !== "" && (
        <div class="toast">
          {message}
          {offered && (
            <button
              type="button"
              class="toast-action"
              data-testid="toast-action"
              onClick={() => {
                toast.value = "";
                offered.run();
              }}
            >
              {offered.label}
            </button>
          )}
        </div>
      )}
    </div>
  );
}

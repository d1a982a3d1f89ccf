import type { Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** Short news that goes by itself. */
export function Toast({ toast }: { toast: Signal<string> }) {
  const message = toast.value;
  useEffect(() => {
    if (message === "") return;
    const timer = setTimeout(() => (toast.value = ""), 5_000);
    return () => clearTimeout(timer);
  }, [message]);
  return (
    <div class="toasts" role="status" data-testid="toast">
      {message !== "" && <div class="toast">{message}</div>}
    </div>
  );
}

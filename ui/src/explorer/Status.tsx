import { useEffect } from "preact/hooks";
import { Icon } from "../components/Icon";
import { useExplorer } from "./model";

/** Short news that goes by itself. */
export function Toast() {
  const { toast } = useExplorer();
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

/** Shown while the list on screen may be old because the server is away. */
export function Offline() {
  const explorer = useExplorer();
  const { failure, tools, loading } = explorer.catalog;
  if (failure.value === null || tools.value === null) return null;
  return (
    <div class="offline" role="alert" data-testid="offline">
      <Icon name="plug" />
      <span>{failure.value.message}</span>
      <button type="button" class="button small" disabled={loading.value} onClick={() => void explorer.retry()}>
        Retry
      </button>
    </div>
  );
}

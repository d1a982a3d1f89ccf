import { Icon } from "../components/Icon";
import { useExplorer } from "./model";

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

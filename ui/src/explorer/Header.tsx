import { Icon } from "../components/Icon";
import { IconButton } from "../components/IconButton";
import { ThemeSwitch } from "../components/ThemeSwitch";
import { useExplorer } from "./model";

const LIVE = { static: "", paused: "Paused", connecting: "Connecting", live: "Live", lost: "Reconnecting" } as const;

export function Header() {
  const explorer = useExplorer();
  const info = explorer.catalog.info.value;
  const live = explorer.live.state.value;
  return (
    <header class="top">
      <a class="brand" href="#/">
        <span class="brand-mark">
          <Icon name="leaf" size={18} />
        </span>
        <span class="brand-name">{info?.name ?? "Explorer"}</span>
        {info?.version && <span class="brand-version">{info.version}</span>}
      </a>
      {live !== "static" && (
        <span class={`live ${live}`} data-testid="live-state" title="Whether this list follows the server">
          <span class="live-dot" aria-hidden="true" />
          <span class="live-text">{LIVE[live]}</span>
        </span>
      )}
      <div class="top-end">
        <button
          type="button"
          class="button ghost"
          aria-label="History"
          data-testid="open-history"
          onClick={() => (explorer.panel.value = { type: "history" })}
        >
          <Icon name="clock" />
          <span class="wide-only">History</span>
        </button>
        <ThemeSwitch theme={explorer.settings.theme} />
        <IconButton
          icon="keyboard"
          label="Keyboard help"
          title="Keyboard help (?)"
          testId="open-help"
          onClick={() => (explorer.panel.value = { type: "help" })}
        />
      </div>
    </header>
  );
}

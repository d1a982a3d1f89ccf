import { Icon } from "../components/Icon";
import { ThemeSwitch } from "../components/ThemeSwitch";
import { useConsole } from "./model";

const LIVE = { connecting: "Connecting", live: "Live", lost: "Reconnecting", paused: "Paused" } as const;

export function Header() {
  const console = useConsole();
  const project = console.project.value;
  const live = console.live.state.value;
  return (
    <header class="top">
      <a class="brand" href="#/">
        <span class="brand-mark">
          <Icon name="leaf" size={18} />
        </span>
        <span class="brand-name">Toolgrove</span>
      </a>
      {project && (
        <span class="brand-project" data-testid="project-name" title={project.file ?? "This project has no file"}>
          {project.name}
          {project.file !== null && <span class="brand-file"> {project.file}</span>}
        </span>
      )}
      <span class={`live ${live}`} data-testid="live-state" title="Whether this page follows what happens">
        <span class="live-dot" aria-hidden="true" />
        <span class="live-text">{LIVE[live]}</span>
      </span>
      <div class="top-end">
        {project && project.version !== "" && (
          <span class="brand-version" data-testid="version" title="The version of Toolgrove">
            {project.version}
          </span>
        )}
        <ThemeSwitch theme={console.settings.theme} />
        <button
          type="button"
          class="icon-button"
          aria-label="Keyboard help"
          title="Keyboard help (?)"
          data-testid="open-help"
          onClick={() => (console.helping.value = true)}
        >
          <Icon name="keyboard" />
        </button>
        {console.session.token.value !== null && (
          <button
            type="button"
            class="icon-button"
            aria-label="Sign out"
            title="Forget the token in this tab"
            data-testid="sign-out"
            onClick={() => console.signOut()}
          >
            <Icon name="out" />
          </button>
        )}
      </div>
    </header>
  );
}

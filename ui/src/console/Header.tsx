import { Icon } from "../components/Icon";
import { ThemeSwitch } from "../components/ThemeSwitch";
import type { Project } from "./facts";
import { useConsole } from "./model";
import { hashOf } from "./route";

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
        <span class="brand-project" data-testid="project-name" title={whereIs(project)}>
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
        <button
          type="button"
          class="icon-button narrow-only"
          aria-label="Find anything"
          title="Find anything"
          data-testid="find-on-phone"
          onClick={() => (console.finding.value = true)}
        >
          <Icon name="search" />
        </button>
        <a
          class="docs-link"
          href={hashOf("docs")}
          aria-current={console.route.value.view === "docs" ? "page" : undefined}
          aria-label="Documentation"
          title="Documentation of this version"
          data-testid="open-docs"
        >
          <Icon name="book" />
          <span class="word">Docs</span>
        </a>
        <ThemeSwitch theme={console.settings.theme} />
        <button
          type="button"
          class="icon-button wide-only"
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
            title="Sign out: forget the token in this tab"
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

/** Where the project file is, in full. */
function whereIs({ file, folder }: Project): string {
  if (file === null) return "This project has no file";
  return folder === null ? file : `${folder}/${file}`;
}

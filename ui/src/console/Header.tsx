import { Icon } from "../components/Icon";
import { IconButton } from "../components/IconButton";
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
        <IconButton
          icon="search"
          class="narrow-only"
          label="Find anything"
          testId="find-on-phone"
          onClick={() => (console.finding.value = true)}
        />
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
        <IconButton
          icon="keyboard"
          class="wide-only"
          label="Keyboard help"
          title="Keyboard help (?)"
          testId="open-help"
          onClick={() => (console.helping.value = true)}
        />
        {console.session.token.value !== null && (
          <IconButton
            icon="out"
            label="Sign out"
            title="Sign out: forget the token in this tab"
            testId="sign-out"
            onClick={() => console.signOut()}
          />
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

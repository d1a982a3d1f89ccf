import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { QuestionDialog } from "../bench/QuestionDialog";
import { Icon } from "../components/Icon";
import { KeysDialog } from "../components/KeysDialog";
import { Toast } from "../components/Toast";
import { Agents } from "./Agents";
import { Approvals } from "./Approvals";
import { Audit } from "./Audit";
import { Explanation } from "./Explanation";
import { FileBanner } from "./FileBanner";
import { Header } from "./Header";
import { SHORTCUTS } from "./keys";
import { useConsole } from "./model";
import { Nav, TITLES } from "./Nav";
import { Overview } from "./Overview";
import { Palette } from "./Palette";
import { type View, viewsOf } from "./route";
import { SignIn } from "./SignIn";
import { Sources } from "./Sources";
import { TryTool } from "./TryTool";
import { TreeView } from "./tree/TreeView";

const SCREENS: Record<View, ComponentType> = {
  overview: Overview,
  agents: Agents,
  tree: TreeView,
  approvals: Approvals,
  sources: Sources,
  audit: Audit,
  try: TryTool,
};

export function App() {
  const console = useConsole();
  const standing = console.session.standing.value;
  const known = console.project.value !== null;
  if (standing === "asking") return <SignIn />;
  if (standing === "trying" && !known) return <p class="loading">Loading…</p>;
  return <Frame />;
}

function Frame() {
  const console = useConsole();
  const project = console.project.value;
  const asked = console.route.value.view;
  const view = viewsOf(project).includes(asked) ? asked : "overview";
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  const Screen = SCREENS[view];
  useEffect(() => {
    document.title = [TITLES[view], project?.name, "Toolgrove"].filter(Boolean).join(" · ");
  }, [view, project?.name]);
  // A new view begins at its top, for eyes and for screen readers.
  useEffect(() => {
    if (!first.current) main.current?.focus();
    main.current?.scrollTo(0, 0);
    first.current = false;
  }, [view]);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <Header />
      {console.failure.value !== "" && (
        <div class="offline" role="alert" data-testid="offline">
          <Icon name="plug" />
          <span>{console.failure.value}</span>
          <button type="button" class="button small" onClick={() => void console.load()}>
            Retry
          </button>
        </div>
      )}
      <FileBanner />
      <div class="desk">
        <Nav />
        <main id="main" ref={main} class="main" tabIndex={-1} aria-label={TITLES[view]} data-view={view}>
          <Screen />
        </main>
      </div>
      <Toast toast={console.toast} action={console.toastAction} />
      {console.asked.value && (
        <QuestionDialog
          key={console.asked.value.question.state ?? ""}
          tool={console.asked.value.tool}
          question={console.asked.value.question}
          onAnswer={console.asked.value.answer}
        />
      )}
      {console.finding.value && <Palette onClose={() => (console.finding.value = false)} />}
      {console.explaining.value && <Explanation view={view} onClose={() => (console.explaining.value = false)} />}
      {console.helping.value && (
        <KeysDialog
          shortcuts={SHORTCUTS}
          singleKeys={console.settings.singleKeys}
          onClose={() => (console.helping.value = false)}
        />
      )}
    </>
  );
}

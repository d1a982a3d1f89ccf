import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { QuestionDialog } from "../bench/QuestionDialog";
import { Icon } from "../components/Icon";
import { KeysDialog } from "../components/KeysDialog";
import { Empty } from "../components/Notice";
import { Toast } from "../components/Toast";
import { useNow } from "../components/useNow";
import { Agents } from "./Agents";
import { Approvals } from "./Approvals";
import { Audit } from "./Audit";
import { CallPage } from "./CallPage";
import { Explanation } from "./Explanation";
import { FileBanner } from "./FileBanner";
import { tickVisit } from "./first-steps";
import { Header } from "./Header";
import { SHORTCUTS } from "./keys";
import { Manual } from "./Manual";
import { useConsole } from "./model";
import { Nav, TITLES } from "./Nav";
import { Overview } from "./Overview";
import { Palette } from "./Palette";
import { Runs } from "./Runs";
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
  calls: CallPage,
  runs: Runs,
  docs: Manual,
  unknown: Unknown,
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
  const route = console.route.value;
  const asked = route.view;
  const view = asked === "tree" && !viewsOf(project).includes(asked) ? "overview" : asked;
  const pending = console.approvals.value?.filter((one) => one.state === "pending").length ?? 0;
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  const Screen = SCREENS[view];
  useEffect(() => {
    const count = pending > 0 ? `(${pending}) ` : "";
    document.title = count + [TITLES[view], project?.name, "Toolgrove"].filter(Boolean).join(" · ");
  }, [view, project?.name, pending]);
  // Before the page is painted, or a visit that is over soon would not count.
  useLayoutEffect(() => {
    if (project) tickVisit(project, route);
  }, [route, project?.name]);
  // A new view begins at its top, for eyes and for screen readers.
  useLayoutEffect(() => {
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
          <span>
            {console.failure.value} <Countdown />
          </span>
          <button type="button" class="button small" onClick={() => console.retry()}>
            Retry now
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

/** How long until the page tries to reach the server again. */
function Countdown() {
  const console = useConsole();
  const now = useNow(500);
  const at = console.live.retryAt.value;
  if (console.live.state.value !== "lost" || at === null) return null;
  return <span data-testid="countdown">Trying again in {Math.max(1, Math.ceil((at - now) / 1_000))} s.</span>;
}

function Unknown() {
  return (
    <div class="view">
      <Empty icon="search" title="There is no page at this address" testId="unknown">
        <p>The link may be old, or mistyped.</p>
        <a href="#/">Go to the overview</a>
      </Empty>
    </div>
  );
}

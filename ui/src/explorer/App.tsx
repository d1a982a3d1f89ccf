import { useEffect } from "preact/hooks";
import { HistoryDialog } from "../bench/HistoryDialog";
import { CopyButton } from "../components/CopyButton";
import { Empty } from "../components/Notice";
import { Toast } from "../components/Toast";
import { Header } from "./Header";
import { HelpDialog } from "./HelpDialog";
import { useExplorer } from "./model";
import { Offline } from "./Status";
import { ToolList } from "./ToolList";
import { ToolScreen } from "./ToolScreen";

export function App() {
  const explorer = useExplorer();
  const { tool } = explorer.route.value;
  const info = explorer.catalog.info.value;
  const panel = explorer.panel.value;
  useEffect(() => {
    document.title = [tool, info?.name, "Explorer"].filter(Boolean).join(" · ");
  }, [tool, info]);
  const close = (): void => {
    explorer.panel.value = null;
  };
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the tool
      </a>
      <Header />
      <Offline />
      <div class={`page ${tool === null ? "at-list" : "at-tool"}`}>
        <ToolList />
        <main id="main" class="main screen-room" tabIndex={-1}>
          {tool === null ? <Welcome /> : <ToolScreen key={tool} name={tool} />}
        </main>
      </div>
      <Toast toast={explorer.toast} />
      {panel?.type === "help" && <HelpDialog onClose={close} />}
      {panel?.type === "history" && (
        <HistoryDialog
          calls={explorer.calls.value}
          onRestore={(call) => void explorer.restore(call)}
          onRerun={explorer.bench.canRun.value ? (call) => void explorer.rerun(call) : null}
          onClear={() => explorer.clearHistory()}
          onClose={close}
        />
      )}
    </>
  );
}

function Welcome() {
  const { catalog, settings } = useExplorer();
  const tools = catalog.tools.value;
  if (tools === null || tools.length === 0) return null;
  return (
    <div class="welcome">
      <h1 class="visually-hidden">Tool explorer</h1>
      <div class="welcome-box">
        <Empty icon="leaf" title="Pick a tool to see what it does and run it" testId="welcome">
          <p>
            {settings.singleKeys.value ? (
              <>
                Press <kbd>/</kbd> to search, <kbd>↑</kbd> <kbd>↓</kbd> to move, <kbd>Enter</kbd> to open.
              </>
            ) : (
              "Use the list to open a tool."
            )}
          </p>
        </Empty>
        <ServerCard />
      </div>
    </div>
  );
}

/** How an MCP client reaches the same tools. */
function ServerCard() {
  const { catalog, mcp } = useExplorer();
  const info = catalog.info.value;
  if (!info) return null;
  const address = mcp.value?.url;
  return (
    <section class="card" aria-label="This server">
      <dl class="facts">
        <div>
          <dt>MCP endpoint</dt>
          <dd>
            {address ? (
              <>
                <code>{address}</code>
                <CopyButton compact label="Copy the endpoint" text={() => address} />
              </>
            ) : (
              "over the old SSE transport, without progress and questions here"
            )}
          </dd>
        </div>
        <div>
          <dt>Running tools here</dt>
          <dd>{info.allowExecute ? "on" : "off (allow_execute)"}</dd>
        </div>
      </dl>
    </section>
  );
}

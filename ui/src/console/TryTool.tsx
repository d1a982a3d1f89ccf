import { computed, type Signal, signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Bench, BenchContext, type Opened } from "../bench/bench";
import { type Run, Runner } from "../bench/runner";
import { ToolBench, type View } from "../bench/ToolBench";
import { Badge, badgesOf } from "../components/Badge";
import { Icon } from "../components/Icon";
import { Callout, Empty } from "../components/Notice";
import { Select } from "../components/Select";
import { FormDraft, serverProblems } from "../lib/draft";
import { readFailure } from "../lib/failure";
import { plural } from "../lib/format";
import { sameJson } from "../lib/json";
import { find } from "../lib/search";
import type { ToolDetail } from "../lib/tool";
import { text } from "./facts";
import { type Console, useConsole, useNews } from "./model";
import { hashOf } from "./route";

const PAGE = 200;

/** The tools of one agent, and the forms that were begun for them. */
class Workbench {
  readonly tools: Signal<ToolDetail[] | null> = signal(null);
  readonly problem = signal("");
  readonly bench: Bench;
  private readonly drafts = new Map<string, FormDraft>();

  constructor(
    private readonly console: Console,
    readonly agent: string,
  ) {
    const mcp = console.mcp(agent);
    const runner = new Runner(
      () => mcp,
      () => performance.now(),
      (run) => this.ended(run),
    );
    const reach = computed(() => ({
      mcpUrl: mcp.url,
      callUrl: () => mcp.url,
      needsToken: console.session.token.value !== null,
    }));
    this.bench = new Bench(runner, signal(true), reach, Advice);
  }

  async load(): Promise<void> {
    try {
      const before = this.tools.peek();
      const tools = await this.console.tools(this.agent);
      for (const tool of tools) {
        const old = before?.find((one) => one.name === tool.name);
        const draft = this.drafts.get(tool.name);
        if (draft && old && !sameJson(old.inputSchema, tool.inputSchema))
          this.drafts.set(tool.name, new FormDraft(tool.inputSchema, draft.value.peek()));
      }
      this.tools.value = tools;
      this.problem.value = "";
    } catch (error) {
      this.problem.value = error instanceof Error ? error.message : String(error);
    }
  }

  open(name: string): Opened | null {
    const tool = this.tools.value?.find((one) => one.name === name);
    if (!tool) return null;
    const draft = this.drafts.get(name) ?? new FormDraft(tool.inputSchema);
    this.drafts.set(name, draft);
    return { tool, draft };
  }

  private ended(run: Run): void {
    if (run.status === "failed") this.drafts.get(run.tool)?.setServerProblems(serverProblems(run.error, run.args));
  }
}

/** Run a tool as one of the agents, through the same gate. */
export function TryTool() {
  const console = useConsole();
  const agents = console.project.value?.agents ?? [];
  const { subject, detail } = console.route.value;
  const agent = subject ?? agents[0]?.name ?? null;
  if (agent === null) return <Empty icon="agents" title="This project has no agents" />;
  return <Tools key={agent} agent={agent} tool={detail} agents={agents.map((one) => one.name)} />;
}

function Tools({ agent, tool, agents }: { agent: string; tool: string | null; agents: string[] }) {
  const console = useConsole();
  const workbench = useMemo(() => new Workbench(console, agent), [agent]);
  const [query, setQuery] = useState("");
  const [limit, setLimit] = useState(PAGE);
  const [view, setView] = useState<View>("run");
  useEffect(() => void workbench.load(), [workbench]);
  useNews(
    (news) => {
      if (news.type === "pool" || news.type === "begun") void workbench.load();
    },
    [workbench],
  );
  const tools = workbench.tools.value;
  const hits = useMemo(() => find(tools ?? [], query, new Set()), [tools, query]);
  const opened = tool === null ? null : workbench.open(tool);
  return (
    <BenchContext.Provider value={workbench.bench}>
      <div class={`split tools-split ${tool === null ? "at-list" : "at-detail"}`}>
        <section class="split-list" aria-label="Tools">
          <h1 class="split-title">Try a tool</h1>
          <div class="filters">
            <Select
              label="As agent"
              value={agent}
              options={agents.map((name) => [name, name] as const)}
              onChange={(name) => console.go(hashOf("try", name))}
            />
            <input
              class="input"
              type="search"
              data-search
              aria-label="Search tools"
              placeholder="Search tools"
              value={query}
              onInput={(event) => setQuery(event.currentTarget.value)}
            />
          </div>
          <p class="split-count" role="status">
            {tools &&
              (query === "" ? plural(tools.length, "tool") : `${hits.length} of ${plural(tools.length, "tool")}`)}
          </p>
          {workbench.problem.value !== "" && <Callout tone="danger" title={workbench.problem.value} />}
          {tools?.length === 0 && <Empty icon="flask" title="This agent has no tools" />}
          <ul class="entries">
            {hits.slice(0, limit).map(({ item }) => (
              <li key={item.name}>
                <a
                  class="entry"
                  href={hashOf("try", agent, item.name)}
                  aria-current={item.name === tool ? "true" : undefined}
                  data-testid="tool-link"
                  data-tool={item.name}
                >
                  <code class="entry-name">{item.name}</code>
                  <span class="quiet clamp">{item.description.slice(0, 200)}</span>
                </a>
              </li>
            ))}
          </ul>
          {hits.length > limit && (
            <button type="button" class="more" onClick={() => setLimit(limit + PAGE)}>
              Show more ({hits.length - limit} left)
            </button>
          )}
        </section>
        <section class="split-detail screen-room" aria-label="The tool">
          {opened && (
            <article class="screen" aria-label={opened.tool.name} data-testid="tool-detail">
              <a class="back" href={hashOf("try", agent)}>
                <Icon name="back" /> All tools
              </a>
              <header class="screen-head">
                <div class="screen-title">
                  <h2>{opened.tool.name}</h2>
                  <span class="meta">as {agent}</span>
                </div>
                {opened.tool.description && <p class="screen-about">{opened.tool.description}</p>}
                <div class="badges">
                  {badgesOf(opened.tool).map((badge) => (
                    <Badge key={badge.text} {...badge} />
                  ))}
                </div>
              </header>
              <ToolBench key={opened.tool.name} opened={opened} view={view} onView={setView} />
            </article>
          )}
          {!opened && tool !== null && tools !== null && (
            <Empty icon="search" title={`${agent} has no tool ${tool}`}>
              <p>
                Its <a href={hashOf("agents", agent)}>receipt</a> tells why.
              </p>
            </Empty>
          )}
          {tool === null && (
            <Empty icon="flask" title="Pick a tool to run it as this agent">
              <p>The call passes the same gate as the agent's own: rights, limits, approvals and the audit log.</p>
            </Empty>
          )}
        </section>
      </div>
    </BenchContext.Provider>
  );
}

/** What to do about a call that waits for a person. */
function Advice({ run }: { run: Run }) {
  const { facts } = readFailure(run.error);
  if (!facts || text(facts, "reason") !== "approval_required") return null;
  return (
    <Callout tone="info" title="This call waits for an approval" testId="needs-approval">
      <p>
        <a href={hashOf("approvals", text(facts, "approvalId"))}>Look at it in the inbox</a>, then run it again with the
        same arguments.
      </p>
    </Callout>
  );
}

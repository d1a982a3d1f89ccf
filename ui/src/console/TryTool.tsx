import { computed, type Signal, signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Bench, BenchContext, type Opened, useBench } from "../bench/bench";
import { HistoryDialog } from "../bench/HistoryDialog";
import { type Run, Runner } from "../bench/runner";
import { ToolBench, type View } from "../bench/ToolBench";
import { Badge, badgesOf } from "../components/Badge";
import { Icon } from "../components/Icon";
import { IconButton } from "../components/IconButton";
import { Callout, Empty } from "../components/Notice";
import { Select } from "../components/Select";
import { FormDraft, serverProblems } from "../lib/draft";
import { readFailure } from "../lib/failure";
import { plural } from "../lib/format";
import { type Call, History, type Outcome } from "../lib/history";
import { sameJson } from "../lib/json";
import { argsIn } from "../lib/link";
import { find, type Hit } from "../lib/search";
import { withoutSecrets } from "../lib/secrets";
import { browserStorage } from "../lib/storage";
import type { ToolDetail } from "../lib/tool";
import { text } from "./facts";
import { type Console, useConsole, useNews } from "./model";
import { hashOf } from "./route";
import { ViewHead } from "./ViewHead";

const PAGE = 200;
/** The list only carries the badges that should make one stop. */
const LISTED = new Set(["destructive", "needs approval"]);
const OUTCOMES: Partial<Record<Run["status"], Outcome>> = { done: "ok", failed: "error", cancelled: "cancelled" };

/** The tools of one agent, and the forms that were begun for them. */
class Workbench {
  readonly tools: Signal<ToolDetail[] | null> = signal(null);
  readonly problem = signal("");
  /** By tool: the source that it is from. */
  readonly sources: Signal<ReadonlyMap<string, string>> = signal(new Map());
  /** The tools whose every call a person approves. */
  readonly asks: Signal<ReadonlySet<string>> = signal(new Set());
  readonly calls: Signal<Call[]>;
  readonly bench: Bench;
  private readonly history: History;
  private readonly drafts = new Map<string, FormDraft>();

  constructor(
    private readonly console: Console,
    readonly agent: string,
  ) {
    this.history = new History(browserStorage, `toolgrove.playground:${console.project.peek()?.name ?? ""}/${agent}`);
    this.calls = signal(this.history.list());
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
      const [tools, receipt] = await Promise.all([
        this.console.tools(this.agent),
        this.console.api.receipt(this.agent),
      ]);
      const asks = new Set(receipt.verdicts.flatMap((one) => (one.approval === "" ? [] : [one.tool])));
      this.asks.value = asks;
      this.sources.value = new Map(receipt.verdicts.map((one) => [one.tool, one.source]));
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

  /** Puts the arguments of an earlier call into the form of its tool. */
  restore(call: Call): Opened | null {
    const opened = this.open(call.tool);
    opened?.draft.load(call.args);
    return opened;
  }

  forget(): void {
    this.calls.value = this.history.clear();
  }

  private ended(run: Run): void {
    const outcome = OUTCOMES[run.status];
    const schema = this.tools.peek()?.find((tool) => tool.name === run.tool)?.inputSchema;
    if (outcome !== undefined && schema)
      this.calls.value = this.history.add({
        id: crypto.getRandomValues(new Uint32Array(2)).join("-"),
        tool: run.tool,
        args: withoutSecrets(schema, run.args),
        at: Date.now(),
        took: run.took,
        outcome,
      });
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
  const [recalling, setRecalling] = useState(false);
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
  // A link fills in the form, and never runs anything.
  const given = console.route.value.query.args;
  useEffect(() => {
    const args = given === undefined ? null : argsIn(given);
    if (args && opened) opened.draft.load(args);
  }, [given, opened?.tool.name]);
  return (
    <BenchContext.Provider value={workbench.bench}>
      <div class={`split tools-split ${tool === null ? "at-list" : "at-detail"}`}>
        <section class="split-list" aria-label="Tools">
          <ViewHead
            title="Playground"
            end={
              <IconButton
                icon="clock"
                label="History"
                title="Calls that you made from here"
                testId="open-history"
                onClick={() => setRecalling(true)}
              />
            }
          >
            Run a tool as one of your agents.
          </ViewHead>
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
          {bySource(hits.slice(0, limit), workbench.sources.value).map(([source, members]) => (
            <Group
              key={source}
              source={source}
              members={members}
              asks={workbench.asks.value}
              agent={agent}
              tool={tool}
            />
          ))}
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
                  {badgesOf({
                    ...opened.tool,
                    requiresApproval: opened.tool.requiresApproval || workbench.asks.value.has(opened.tool.name),
                  }).map((badge) => (
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
                Its <a href={hashOf("agents", agent)}>access</a> tells why.
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
      {recalling && (
        <HistoryDialog
          calls={workbench.calls.value}
          onRestore={(call) => {
            setRecalling(false);
            setView("run");
            if (workbench.restore(call)) console.go(hashOf("try", agent, call.tool));
            else console.say(`${agent} no longer has ${call.tool}`);
          }}
          onRerun={(call) => {
            setRecalling(false);
            setView("run");
            const opened = workbench.restore(call);
            if (!opened) return console.say(`${agent} no longer has ${call.tool}`);
            console.go(hashOf("try", agent, call.tool));
            workbench.bench.run(opened);
          }}
          onClear={() => workbench.forget()}
          onClose={() => setRecalling(false)}
        />
      )}
    </BenchContext.Provider>
  );
}

/** Tools by where they are from, in the order in which they are listed. */
function bySource(hits: Hit<ToolDetail>[], sources: ReadonlyMap<string, string>): [string, ToolDetail[]][] {
  const groups = new Map<string, ToolDetail[]>();
  for (const { item } of hits) {
    const source = sources.get(item.name) ?? "other";
    groups.set(source, [...(groups.get(source) ?? []), item]);
  }
  return [...groups];
}

function Group({
  source,
  members,
  asks,
  agent,
  tool,
}: {
  source: string;
  members: ToolDetail[];
  asks: ReadonlySet<string>;
  agent: string;
  tool: string | null;
}) {
  const [open, setOpen] = useState(true);
  return (
    <section class="group" aria-label={source} data-testid="tool-group" data-source={source}>
      <button type="button" class="group-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class={`twist ${open ? "open" : ""}`}>
          <Icon name="chevron" size={12} />
        </span>
        <span class="group-name">{source}</span>
        <span class="group-count">{members.length}</span>
      </button>
      {open && (
        <ul class="entries">
          {members.map((item) => (
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
                <span class="tool-badges">
                  {badgesOf({ ...item, requiresApproval: item.requiresApproval || asks.has(item.name) })
                    .filter((badge) => LISTED.has(badge.text))
                    .map((badge) => (
                      <Badge key={badge.text} {...badge} />
                    ))}
                </span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** What to do about a call that waits for a person. */
function Advice({ run }: { run: Run }) {
  const console = useConsole();
  const bench = useBench();
  const [problem, setProblem] = useState("");
  const { facts } = readFailure(run.error);
  if (!facts || text(facts, "reason") !== "approval_required") return null;
  const id = text(facts, "approvalId");
  const approve = async (): Promise<void> => {
    try {
      console.put(await console.api.decide(id, { approve: true }));
      bench.again(run);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <Callout tone="info" title="This call waits for your approval" testId="needs-approval">
      <p>
        You may approve it yourself, for this one run. <a href={hashOf("approvals", id)}>Look at it first</a>
      </p>
      <p class="actions">
        <button type="button" class="button small primary" data-testid="approve-and-run" onClick={() => void approve()}>
          Approve and run
        </button>
      </p>
      {problem !== "" && (
        <p class="field-problem" role="alert">
          {problem}
        </p>
      )}
    </Callout>
  );
}

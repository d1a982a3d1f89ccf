import { useEffect, useMemo, useState } from "preact/hooks";
import { Badge } from "../components/Badge";
import { Card } from "../components/Card";
import { CopyButton } from "../components/CopyButton";
import { Icon } from "../components/Icon";
import { Coloured } from "../components/JsonText";
import { Callout, Empty } from "../components/Notice";
import { Tabs } from "../components/Tabs";
import { ToolName } from "../components/ToolName";
import { plural } from "../lib/format";
import { printJson } from "../lib/json-print";
import { AccessDialog, type Wish, wantsFor } from "./AccessDialog";
import { clientConfigs } from "./clients";
import type { AgentSummary, Receipt, Verdict } from "./facts";
import { useConsole, useNews } from "./model";
import { hashOf } from "./route";
import type { Want } from "./sources";
import { Tokens } from "./Tokens";
import { ViewHead } from "./ViewHead";
import { inWords, MEANINGS, standingOf, standingWord, toneOf } from "./verdicts";

const FIRST = 200;

/** What each agent sees, and why it does not see the rest. */
export function Agents() {
  const console = useConsole();
  const agents = console.project.value?.agents ?? [];
  const { subject } = console.route.value;
  const chosen = agents.find((agent) => agent.name === subject) ?? (subject === null ? agents[0] : undefined);
  return (
    <div class="view">
      <ViewHead title="Agents">What each agent can use, and why. Change it right where you see it.</ViewHead>
      <div class="picker" role="group" aria-label="Agents">
        {agents.map((agent) => (
          <a
            key={agent.name}
            class="pick"
            href={hashOf("agents", agent.name)}
            aria-current={agent === chosen ? "true" : undefined}
            data-testid="agent"
          >
            <span class="pick-name">{agent.name}</span>
            <span class="quiet">{plural(agent.tools, "tool")}</span>
            {agent.warnings.length > 0 && (
              <span class="mark warn">
                <Icon name="warning" size={12} />
                <span class="visually-hidden">{plural(agent.warnings.length, "warning")}</span>
              </span>
            )}
          </a>
        ))}
      </div>
      {chosen ? (
        <AgentScreen key={chosen.name} agent={chosen} />
      ) : (
        <Empty
          icon="agents"
          title={agents.length === 0 ? "This project has no agents" : `There is no agent ${subject ?? ""}`}
        >
          <p>Agents are defined in the project file, under agents.</p>
        </Empty>
      )}
    </div>
  );
}

function AgentScreen({ agent }: { agent: AgentSummary }) {
  const console = useConsole();
  const [receipt, setReceipt] = useState<Receipt | null>(null);
  const [problem, setProblem] = useState("");
  const load = (): void => {
    console.api
      .receipt(agent.name)
      .then((next) => {
        setReceipt(next);
        setProblem("");
      })
      .catch((error: Error) => setProblem(error.message));
  };
  useEffect(load, [agent.name]);
  useNews(
    (news) => {
      if (news.type === "pool" || news.type === "begun") load();
    },
    [agent.name],
  );
  return (
    <div class="stack" data-testid="agent-screen">
      <header class="agent-head">
        <div>
          <h2>{agent.name}</h2>
          {agent.description && <p class="quiet">{agent.description}</p>}
        </div>
        <div class="actions">
          {console.project.value?.tree !== false && (
            <a class="button small" href={hashOf("tree", agent.name)}>
              <Icon name="tree" /> Tree
            </a>
          )}
          <a class="button small" href={hashOf("try", agent.name)}>
            <Icon name="flask" /> Playground
          </a>
          <a class="button small" href={hashOf("audit", agent.name)}>
            <Icon name="log" /> Audit
          </a>
        </div>
      </header>
      {agent.warnings.map((warning) => (
        <Callout key={warning} tone="warning" title={warning} />
      ))}
      {problem !== "" && <Callout tone="danger" title={problem} />}
      <div class="columns agent-columns">
        {receipt ? <ReceiptCard receipt={receipt} /> : <p class="loading">Loading…</p>}
        <Connect agent={agent} />
      </div>
    </div>
  );
}

/** What the list costs, source by source. */
function costOf({ tokens, verdicts }: Receipt): string {
  const has = verdicts.filter((one) => one.verdict === "granted").length;
  const sources = [...tokens.sources].map(([name, cost]) => `${name} ${cost.toLocaleString("en")}`);
  const whole = `${tokens.tools.size} of ${plural(has, "tool")} listed, about ${tokens.total.toLocaleString("en")} tokens (an estimate)`;
  return `${whole} of a budget of ${tokens.budget.toLocaleString("en")}${sources.length > 1 ? `: ${sources.join(", ")}` : ""}.`;
}

function tokensIn({ tokens }: Receipt, one: Verdict): string {
  const cost = tokens.tools.get(one.tool);
  return cost === undefined ? (one.verdict === "granted" ? "found" : "") : cost.toLocaleString("en");
}

function ReceiptCard({ receipt }: { receipt: Receipt }) {
  const [verdict, setVerdict] = useState<string | null>(null);
  const [query, setQuery] = useState("");
  const [limit, setLimit] = useState(FIRST);
  const counts = useMemo(() => countVerdicts(receipt.verdicts), [receipt]);
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const [wish, setWish] = useState<Wish | null>(null);
  const all = useMemo(
    () => [...receipt.verdicts].sort((a, b) => rankOf(standingOf(a)) - rankOf(standingOf(b))),
    [receipt],
  );
  const shown = all.filter(
    (one) =>
      (verdict === null || standingOf(one) === verdict) &&
      words.every((word) => `${one.tool} ${one.source} ${one.rule}`.toLowerCase().includes(word)),
  );
  return (
    <Card
      title="Access"
      testId="receipt"
      end={
        <span class="meta" title="Names exactly this access; every call records it, as its receipt">
          Fingerprint <code>{receipt.hash}</code>
        </span>
      }
    >
      <p class="card-body quiet" data-testid="tokens">
        {costOf(receipt)}
      </p>
      <div class="filters">
        <input
          class="input"
          type="search"
          data-search
          aria-label="Search tools"
          placeholder="Search tools and rules"
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
        />
        <div class="chips" role="group" aria-label="Filter by access">
          <button type="button" class="chip" aria-pressed={verdict === null} onClick={() => setVerdict(null)}>
            All <span class="chip-count">{receipt.verdicts.length}</span>
          </button>
          {counts.map(([name, count]) => (
            <button
              key={name}
              type="button"
              class="chip"
              aria-pressed={verdict === name}
              title={MEANINGS[name]?.meaning}
              data-testid="verdict"
              onClick={() => setVerdict(verdict === name ? null : name)}
            >
              {standingWord(name)} <span class="chip-count">{count}</span>
            </button>
          ))}
        </div>
      </div>
      <p class="visually-hidden" role="status">
        {plural(shown.length, "tool")}
      </p>
      {shown.length === 0 ? (
        <Empty icon="search" title="Nothing matches" />
      ) : (
        <div class="table-wrap">
          <table class="table access" data-testid="verdicts">
            <thead>
              <tr>
                <th scope="col">Tool</th>
                <th scope="col">Source</th>
                <th scope="col">Access</th>
                <th scope="col" title="About what it costs in the list: characters / 4">
                  Tokens
                </th>
                <th scope="col">Why</th>
                <th scope="col">
                  <span class="visually-hidden">Change</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.slice(0, limit).map((one) => (
                <tr key={one.tool} data-tool={one.tool} data-verdict={one.verdict} data-standing={standingOf(one)}>
                  <th scope="row" data-label="Tool">
                    {one.verdict === "granted" ? (
                      <a href={hashOf("try", receipt.agent, one.tool)}>
                        <ToolName name={one.tool} />
                      </a>
                    ) : (
                      <ToolName name={one.tool} />
                    )}
                  </th>
                  <td data-label="Source">
                    <a href={hashOf("sources", one.source, one.tool)}>{one.source}</a>
                  </td>
                  <td data-label="Access">
                    <Badge
                      text={standingWord(standingOf(one))}
                      tone={toneOf(standingOf(one))}
                      meaning={MEANINGS[standingOf(one)]?.meaning ?? ""}
                    />
                  </td>
                  <td data-label="Tokens">{tokensIn(receipt, one)}</td>
                  <td data-label="Why" title={one.rule}>
                    {inWords(one)}
                    {one.approval !== "" && one.verdict === "granted" && (
                      <span class="why quiet">{approvalInWords(one.approval)}</span>
                    )}
                  </td>
                  <td data-label="Change">
                    <AccessMenu
                      verdict={one}
                      onWant={(want) => setWish({ agent: receipt.agent, tool: one.tool, want })}
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {wish && <AccessDialog wish={wish} onClose={() => setWish(null)} />}
      {receipt.offered.length > 0 && (
        <details class="messages" data-testid="offered">
          <summary>{plural(receipt.offered.length, "resource or prompt", "resources and prompts")}</summary>
          <ul class="lines">
            {receipt.offered.slice(0, limit).map((one) => (
              <li key={`${one.kind} ${one.address}`} class="item">
                <span class="item-what">
                  <code>{one.address}</code>{" "}
                  <span class="quiet">
                    {one.kind} of {one.source}
                  </span>
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
      {shown.length > limit && (
        <p class="card-body">
          <button type="button" class="more" onClick={() => setLimit(limit + FIRST)}>
            Show more ({shown.length - limit} left)
          </button>
        </p>
      )}
    </Card>
  );
}

/** What can be done about an agent's access to a tool. */
function AccessMenu({ verdict, onWant }: { verdict: Verdict; onWant: (want: Want) => void }) {
  return (
    <span class="access-menu" role="group" aria-label={`Change access to ${verdict.tool}`}>
      {wantsFor(standingOf(verdict)).map(([want, label]) => (
        <button
          key={want}
          type="button"
          class="link-button"
          aria-label={`${label}: ${verdict.tool}`}
          data-want={want}
          onClick={() => onWant(want)}
        >
          {label}
        </button>
      ))}
    </span>
  );
}

/** Why a person is asked. */
function approvalInWords(rule: string): string {
  const [, pattern] = /^approve: (.*)$/s.exec(rule) ?? [];
  return pattern === undefined ? `Asks first: ${rule}` : `Asks first by approve: ${pattern}`;
}

function countVerdicts(verdicts: Verdict[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const one of verdicts) counts.set(standingOf(one), (counts.get(standingOf(one)) ?? 0) + 1);
  return [...counts].sort((a, b) => rankOf(a[0]) - rankOf(b[0]));
}

/** What an agent has comes first. */
function rankOf(verdict: string): number {
  return Object.keys(MEANINGS).indexOf(verdict);
}

/** How a client reaches this agent. */
function Connect({ agent }: { agent: AgentSummary }) {
  const console = useConsole();
  const url = console.api.mcpUrl(agent.name);
  const needsToken = console.session.token.value !== null;
  const [token, setToken] = useState<string | null>(null);
  const configs = clientConfigs(console.project.value?.name ?? "", agent.name, url, needsToken, token ?? undefined);
  const [client, setClient] = useState(configs[0]?.name ?? "");
  const current = configs.find((config) => config.name === client) ?? configs[0];
  return (
    <Card title="Connect a client" testId="connect">
      <div class="card-body">
        <p class="eyebrow">MCP address</p>
        <p class="address">
          <code data-testid="mcp-url">{url}</code>
          <CopyButton compact label="Copy the address" text={() => url} />
        </p>
        {current && (
          <div class="config-tabs">
            <Tabs
              label="Client"
              look="pill"
              current={current.name}
              onSelect={setClient}
              tabs={configs.map(({ name, label }) => ({ name, label }))}
            >
              <p class="config-head">
                <span class="quiet">{current.where}</span>
                <CopyButton label="Copy" text={() => current.text} testId="copy-config" />
              </p>
              <pre
                class="code json"
                tabIndex={0}
                role="region"
                aria-label={`Configuration of ${current.label}`}
                data-testid="client-config"
              >
                <code>
                  <Coloured text={current.text} />
                </code>
              </pre>
            </Tabs>
          </div>
        )}
        {needsToken && (
          <p class="quiet small" data-testid="token-hint">
            {token === null
              ? "TOKEN stands for the agent's token, which is shown only once. Make a new one below, and it appears here."
              : "The new token is in the entry. Copy it now: it is gone when you leave this page."}
          </p>
        )}
        {needsToken && <Tokens agent={agent.name} onMade={setToken} />}
        <OpenaiButton agent={agent.name} />
      </div>
    </Card>
  );
}

function OpenaiButton({ agent }: { agent: string }) {
  const console = useConsole();
  const [tools, setTools] = useState("");
  useEffect(() => {
    console.api
      .openaiTools(agent)
      .then((answer) => setTools(printJson(answer, 2)))
      .catch(() => setTools(""));
  }, [agent]);
  return (
    <p class="config-head">
      <span class="quiet">The same tools as OpenAI function definitions</span>
      <CopyButton label="Copy" text={() => tools} />
    </p>
  );
}

import { useEffect, useState } from "preact/hooks";
import { Icon } from "../components/Icon";
import { IconButton } from "../components/IconButton";
import { NO_FILTER } from "./api";
import type { Project } from "./facts";
import { doneSteps, isSample, type Step, tick as ticked } from "./first-steps";
import { useConsole } from "./model";
import { hashOf } from "./route";

/** What to do in the first minutes; steps tick themselves as they are done. */
export function Welcome({ project }: { project: Project }) {
  const console = useConsole();
  const [done, setDone] = useState(() => doneSteps(project));
  const tick = (step: Step | "dismissed"): void => setDone(ticked(project, step));
  const names = project.agents.map((agent) => agent.name);
  const sample = isSample(project);
  const pending = console.approvals.value?.find((one) => one.state === "pending");
  const decided = console.approvals.value?.some(
    (one) => one.decidedBy === "operator" && (!sample || one.tool === "shop_place_order"),
  );
  useEffect(() => {
    if (decided) tick("approve");
  }, [decided]);
  const looks = done.has("connect") || done.has("dismissed") ? 0 : console.calls.value.length;
  // The first use of a token of an agent is on record; somebody's client has come.
  useEffect(() => {
    if (done.has("connect") || done.has("dismissed")) return;
    console.api
      .audit({ ...NO_FILTER, kind: "token", toolPart: "used" }, null, 20)
      .then(({ items }) => items.some((one) => names.includes(one.agent)) && tick("connect"))
      .catch(() => undefined);
  }, [looks]);
  if (done.has("dismissed")) return null;
  const reader = sample
    ? "researcher"
    : (project.agents.find((agent) => agent.role === "reader") ?? project.agents[0])?.name;
  const steps: [Step, string, string, string, boolean][] = [
    [
      "approve",
      hashOf("approvals", pending?.id ?? null),
      sample ? "Approve the order" : "Approve a call",
      sample
        ? "The gardener wants to buy seeds and waits for your yes."
        : "Calls that need a person wait for your yes.",
      true,
    ],
    [
      "access",
      hashOf("agents", reader ?? null),
      sample ? "See why the researcher can’t" : "See who may use what, and why",
      sample ? "It may not order or remove anything; each tool names the rule." : "Each tool names its rule.",
      names.length > 0,
    ],
    [
      "watch",
      sample ? hashOf("tree", "sprinkler", "bed-roots") : hashOf("tree"),
      sample ? "Watch the sprinkler" : "Watch the tree",
      sample ? "It waters one bed after the other, and the tree shows it." : "What agents change shows at once.",
      project.tree,
    ],
    [
      "connect",
      hashOf("agents", sample ? "gardener" : (names[0] ?? null)),
      "Connect your own client",
      "Claude, Cursor, VS Code or any MCP client: copy the entry from the agent’s page.",
      names.length > 0,
    ],
  ];
  const shown = steps.filter(([, , , , there]) => there);
  const left = shown.filter(([step]) => !done.has(step)).length;
  return (
    <section class="card first-steps" aria-label="First steps" data-testid="welcome">
      <div class="card-head">
        <h2>{left === 0 ? "You have seen it all" : "First steps"}</h2>
        <IconButton
          icon="close"
          label="Hide the first steps"
          testId="dismiss-welcome"
          onClick={() => tick("dismissed")}
        />
      </div>
      <ol class="steps">
        {shown.map(([step, href, title, about], index) => (
          <li key={step}>
            <a class="step" href={href} data-testid={`step-${step}`} data-done={done.has(step)}>
              <span class={`mark ${done.has(step) ? "good" : "plain"}`} aria-hidden="true">
                {done.has(step) ? <Icon name="check" size={12} /> : index + 1}
              </span>
              <span>
                <strong>{title}</strong>
                {done.has(step) && <span class="visually-hidden"> (done)</span>}
                <span class="quiet">{about}</span>
              </span>
            </a>
          </li>
        ))}
      </ol>
    </section>
  );
}

import { useState } from "preact/hooks";
import { SchemaForm } from "../components/form/SchemaForm";
import { Icon } from "../components/Icon";
import { Callout } from "../components/Notice";
import { Tabs } from "../components/Tabs";
import { plural } from "../lib/format";
import { printJson } from "../lib/json-print";
import { type Opened, useBench } from "./bench";
import { CodePanel } from "./CodePanel";
import { isActive } from "./runner";

type Mode = "form" | "json" | "code";

/** The arguments, as a form, as JSON or as code, and the button that sends them. */
export function RequestCard({ opened }: { opened: Opened }) {
  const bench = useBench();
  const { tool, draft } = opened;
  const [mode, setMode] = useState<Mode>("form");
  const active = isActive(bench.runner.runs.value.get(tool.name));
  const run = (): void => {
    if (!bench.run(opened)) {
      if (draft.rawError.peek() !== null) setMode("json");
      focusFirstProblem();
    }
  };
  return (
    <form
      class="card request"
      aria-label="Arguments"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      <div class="card-body">
        <Tabs
          label="Arguments as"
          look="pill"
          current={mode}
          onSelect={setMode}
          tabs={[
            { name: "form", label: "Form" },
            { name: "json", label: "JSON" },
            { name: "code", label: "Code" },
          ]}
          end={
            <button type="button" class="button small ghost" onClick={() => draft.reset()}>
              <Icon name="restore" />
              Reset
            </button>
          }
        >
          {mode === "form" && (
            <>
              <ExamplePicker opened={opened} />
              {draft.rawError.value !== null && (
                <Callout tone="warning" title="The JSON text is not valid yet">
                  <p>These fields show the last valid version.</p>
                </Callout>
              )}
              <SchemaForm draft={draft} scope="arg" />
            </>
          )}
          {mode === "json" && <RawEditor opened={opened} />}
          {mode === "code" && <CodePanel opened={opened} />}
        </Tabs>
      </div>
      <div class="card-foot">
        {bench.canRun.value === false && <Disabled />}
        <Summary opened={opened} />
        <div class="run-row">
          <button
            type="submit"
            class="button primary"
            data-testid="run"
            disabled={!bench.canRun.value}
            aria-disabled={active ? "true" : undefined}
            aria-describedby={bench.canRun.value ? undefined : "run-off"}
          >
            <Icon name="play" />
            {active ? "Running…" : "Run"}
          </button>
          {active ? (
            <button type="button" class="button" data-testid="cancel" onClick={() => bench.runner.cancel(tool.name)}>
              <Icon name="stop" />
              Cancel
            </button>
          ) : (
            <span class="quiet keys wide-only" aria-hidden="true">
              <kbd>Ctrl</kbd> <kbd>Enter</kbd>
            </span>
          )}
        </div>
      </div>
    </form>
  );
}

function focusFirstProblem(): void {
  requestAnimationFrame(() =>
    document
      .querySelector<HTMLElement>(".request [aria-invalid=true], .request .wrong button, .request .wrong select")
      ?.focus(),
  );
}

function Disabled() {
  return (
    <Callout tone="info" title="Running tools is turned off on this server" id="run-off" testId="run-off">
      <p>
        Start it with <code>serve(…, explorer=True, allow_execute=True)</code> or{" "}
        <code>--explorer --allow-execute</code> to run tools from this page.
      </p>
    </Callout>
  );
}

/** What keeps the arguments from being sent, and the way round: the server can judge too. */
function Summary({ opened }: { opened: Opened }) {
  const bench = useBench();
  const { draft } = opened;
  const count = draft.problems.value.size;
  if (!draft.submitted.value || (count === 0 && draft.rawError.value === null)) return null;
  const raw = draft.rawError.value;
  return (
    <div role="alert" class="summary" data-testid="problems">
      <Icon name="warning" size={14} />
      <span>{raw ?? `${plural(count, "problem")} in the arguments`}</span>
      {raw === null && draft.sendable && bench.canRun.value && (
        <button type="button" class="link-button" onClick={() => bench.runUnchecked(opened)}>
          Send anyway
        </button>
      )}
    </div>
  );
}

function ExamplePicker({ opened }: { opened: Opened }) {
  const { examples } = opened.tool;
  if (examples.length === 0) return null;
  return (
    <div class="examples" role="group" aria-label="Examples">
      <span class="eyebrow">Examples</span>
      {examples.slice(0, 8).map((example, index) => (
        <button
          key={index}
          type="button"
          class="chip"
          title={example.description || undefined}
          data-testid="use-example"
          onClick={() => opened.draft.load(example.inputs)}
        >
          <span class="chip-text">{example.title}</span>
        </button>
      ))}
    </div>
  );
}

function RawEditor({ opened }: { opened: Opened }) {
  const { draft } = opened;
  const error = draft.rawError.value;
  const problems = [...draft.shown.value];
  return (
    <div class="raw">
      <textarea
        class="input area mono raw-text"
        aria-label="Arguments as JSON"
        aria-invalid={error !== null ? "true" : undefined}
        aria-describedby={error !== null ? "raw-problem" : undefined}
        data-testid="raw-json"
        spellcheck={false}
        rows={14}
        value={draft.raw.value}
        onInput={(event) => draft.editRaw(event.currentTarget.value)}
      />
      {error !== null && (
        <p class="field-problem" id="raw-problem">
          <Icon name="warning" size={14} />
          <span>{error}</span>
        </p>
      )}
      {error === null && problems.length > 0 && (
        <ul class="raw-problems">
          {problems.slice(0, 20).map(([path, messages]) => (
            <li key={path} class="field-problem">
              <code>{path === "" ? "arguments" : path}</code> <span>{messages.join(". ")}</span>
            </li>
          ))}
        </ul>
      )}
      <div>
        <button
          type="button"
          class="button small"
          disabled={error !== null}
          onClick={() => (draft.raw.value = printJson(draft.value.peek(), 2))}
        >
          Format
        </button>
      </div>
    </div>
  );
}

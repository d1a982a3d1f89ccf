import { CopyButton } from "../components/CopyButton";
import { JsonText } from "../components/JsonText";
import { Tabs } from "../components/Tabs";
import { printJson } from "../lib/json-print";
import type { ToolDetail } from "../lib/tool";
import { type Opened, useBench } from "./bench";
import { ConfirmDialog } from "./ConfirmDialog";
import { Docs } from "./Docs";
import { QuestionDialog } from "./QuestionDialog";
import { RequestCard } from "./RequestCard";
import { ResponseCard } from "./ResponseCard";

export type View = "run" | "docs" | "schema";

/** One tool to run, to read about and to look into. */
export function ToolBench({ opened, view, onView }: { opened: Opened; view: View; onView: (view: View) => void }) {
  const { tool } = opened;
  const bench = useBench();
  const question = bench.runner.runs.value.get(tool.name)?.question;
  return (
    <>
      <Tabs
        label="Tool"
        current={view}
        onSelect={onView}
        tabs={[
          { name: "run", label: "Run" },
          {
            name: "docs",
            label: "Documentation",
            ...(tool.examples.length > 0 ? { note: String(tool.examples.length) } : {}),
          },
          { name: "schema", label: "Schema" },
        ]}
      >
        {view === "run" && (
          <div class="bench">
            <RequestCard opened={opened} />
            <ResponseCard opened={opened} />
          </div>
        )}
        {view === "docs" && (
          <Docs
            tool={tool}
            onTry={(inputs) => {
              opened.draft.load(inputs);
              onView("run");
            }}
          />
        )}
        {view === "schema" && <Schemas tool={tool} />}
      </Tabs>
      {question && (
        <QuestionDialog
          key={question.state ?? question.key}
          tool={tool.name}
          question={question}
          onAnswer={(answer) => bench.runner.answer(tool.name, answer)}
        />
      )}
      {bench.confirming.value?.tool.name === tool.name && <ConfirmDialog opened={bench.confirming.value} />}
    </>
  );
}

function Schemas({ tool }: { tool: ToolDetail }) {
  const schemas = [
    ["Input schema", tool.inputSchema],
    ["Output schema", tool.outputSchema],
  ] as const;
  return (
    <div class="stack">
      {schemas.map(([label, schema]) => (
        <section key={label} class="card" aria-label={label}>
          <div class="card-head">
            <h2>{label}</h2>
            {schema && <CopyButton compact label={`Copy ${label.toLowerCase()}`} text={() => printJson(schema, 2)} />}
          </div>
          <div class="card-body">
            {schema ? (
              <JsonText value={schema} label={label} />
            ) : (
              <p class="quiet">This tool does not describe its result.</p>
            )}
          </div>
        </section>
      ))}
    </div>
  );
}

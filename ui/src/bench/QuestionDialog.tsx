import { useMemo } from "preact/hooks";
import { Dialog } from "../components/Dialog";
import { SchemaForm } from "../components/form/SchemaForm";
import type { Question } from "../lib/call";
import { FormDraft } from "../lib/draft";
import { emptyObject } from "../lib/json";
import { useBench } from "./bench";

/** A question the tool asks in the middle of a call. */
export function QuestionDialog({ tool, question }: { tool: string; question: Question }) {
  const { runner } = useBench();
  const draft = useMemo(() => new FormDraft(question.schema ?? emptyObject()), [question]);
  const accept = (): void => {
    if (draft.submit()) runner.answer(tool, { action: "accept", content: draft.value.peek() });
    else requestAnimationFrame(() => document.querySelector<HTMLElement>("dialog [aria-invalid=true]")?.focus());
  };
  return (
    <Dialog
      title={`${tool} asks`}
      testId="question"
      onClose={() => runner.answer(tool, { action: "cancel" })}
      footer={
        <>
          <button type="button" class="button" onClick={() => runner.answer(tool, { action: "decline" })}>
            Decline
          </button>
          <button type="submit" form="question-form" class="button primary">
            {question.schema ? "Answer" : "Accept"}
          </button>
        </>
      }
    >
      <p class="question">{question.message}</p>
      <form
        id="question-form"
        noValidate
        aria-label="Answer"
        onSubmit={(event) => {
          event.preventDefault();
          accept();
        }}
      >
        {question.schema && <SchemaForm draft={draft} scope="ask" />}
      </form>
    </Dialog>
  );
}

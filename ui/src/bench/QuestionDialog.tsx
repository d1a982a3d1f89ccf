import { useMemo } from "preact/hooks";
import { Dialog } from "../components/Dialog";
import { SchemaForm } from "../components/form/SchemaForm";
import type { Answer, Question } from "../lib/call";
import { FormDraft } from "../lib/draft";
import { emptyObject } from "../lib/json";

/** A question the tool asks in the middle of a call. */
export function QuestionDialog({
  tool,
  question,
  onAnswer,
}: {
  tool: string;
  question: Question;
  onAnswer: (answer: Answer) => void;
}) {
  const draft = useMemo(() => new FormDraft(question.schema ?? emptyObject()), [question]);
  const accept = (): void => {
    if (draft.submit()) onAnswer({ action: "accept", content: draft.value.peek() });
    else requestAnimationFrame(() => document.querySelector<HTMLElement>("dialog [aria-invalid=true]")?.focus());
  };
  return (
    <Dialog
      title={`${tool} asks`}
      testId="question"
      onClose={() => onAnswer({ action: "cancel" })}
      footer={
        <>
          <button type="button" class="button" onClick={() => onAnswer({ action: "decline" })}>
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

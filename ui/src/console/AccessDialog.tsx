import { useEffect, useRef, useState } from "preact/hooks";
import { CopyButton } from "../components/CopyButton";
import { Dialog } from "../components/Dialog";
import { Diff } from "../components/Diff";
import { Callout } from "../components/Notice";
import { plural } from "../lib/format";
import { useConsole } from "./model";
import type { AccessPreview, Want } from "./sources";
import { standingWord } from "./verdicts";

export interface Wish {
  agent: string;
  tool: string;
  want: Want;
}

const WANTS: [Want, string, (standing: string) => boolean][] = [
  ["grant", "Grant", (standing) => standing !== "granted"],
  ["ask", "Ask first", (standing) => standing !== "asks"],
  ["hide", "Hide", (standing) => standing !== "denied" && standing !== "masked"],
];

/** What can be wanted of a tool that stands so, in words. */
export function wantsFor(standing: string): [Want, string][] {
  return WANTS.filter(([, , fits]) => fits(standing)).map(([want, label]) => [want, label]);
}

const TITLES: Record<Want, (wish: Wish) => string> = {
  grant: ({ agent, tool }) => `Give ${agent} ${tool}?`,
  ask: ({ agent, tool }) => `Ask you before ${agent} runs ${tool}?`,
  hide: ({ agent, tool }) => `Hide ${tool} from ${agent}?`,
};
const DONE: Record<Want, (wish: Wish) => string> = {
  grant: ({ agent, tool }) => `${agent} can use ${tool} now`,
  ask: ({ agent, tool }) => `You are asked before ${agent} runs ${tool}`,
  hide: ({ agent, tool }) => `${tool} is hidden from ${agent} now`,
};
const FIRST = 12;

/** Shows what a change of access writes into the project file, and writes it on a yes. */
export function AccessDialog({ wish, onClose }: { wish: Wish; onClose: () => void }) {
  const console = useConsole();
  const [preview, setPreview] = useState<AccessPreview | null>(null);
  const [problem, setProblem] = useState("");
  const sent = useRef(false);
  const look = (): void => {
    console.api
      .previewAccess(wish.agent, wish.tool, wish.want)
      .then(setPreview)
      .catch((error: Error) => setProblem(error.message));
  };
  useEffect(look, []);
  const others = (preview?.effects ?? []).filter((effect) => effect.tool !== wish.tool);
  const write = async (): Promise<void> => {
    if (sent.current || preview === null) return;
    sent.current = true;
    setProblem("");
    try {
      const digest = await console.api.changeAccess(wish.agent, wish.tool, wish.want, preview.digest);
      onClose();
      console.say(DONE[wish.want](wish), {
        label: "Undo",
        run: () =>
          void console.api
            .undoAccess(digest)
            .then(() => console.say("Undone: the project file is as it was"))
            .catch((error: Error) => console.say(error.message)),
      });
    } catch (error) {
      sent.current = false;
      setProblem(error instanceof Error ? error.message : String(error));
      setPreview(null);
      look();
    }
  };
  return (
    <Dialog
      title={TITLES[wish.want](wish)}
      testId="access-dialog"
      onClose={onClose}
      footer={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          {preview?.writable && preview.diff !== "" && (
            <button type="button" class="button primary" data-testid="write" onClick={() => void write()}>
              Change {preview.file}
            </button>
          )}
        </>
      }
    >
      <div class="stack">
        {preview === null && problem === "" && <p class="loading">Loading…</p>}
        {preview && preview.diff === "" && <p>It is like this already. Nothing needs to change.</p>}
        {preview && preview.diff !== "" && (
          <>
            <ul class="plain-list">
              {preview.steps.map((step) => (
                <li key={step}>{step}</li>
              ))}
            </ul>
            <Diff text={preview.diff} label={`What changes in ${preview.file}`} />
            {others.length > 0 && (
              <Callout
                tone="warning"
                title={`This also changes ${plural(others.length, "other tool")}`}
                testId="other-effects"
              >
                <ul>
                  {others.slice(0, FIRST).map((effect) => (
                    <li key={effect.tool}>
                      <code>{effect.tool}</code>: {standingWord(effect.before)} → {standingWord(effect.after)}
                    </li>
                  ))}
                </ul>
                {others.length > FIRST && <p>and {others.length - FIRST} more</p>}
              </Callout>
            )}
            {!preview.writable && (
              <Callout tone="info" title={preview.why} testId="not-written">
                <p>
                  <CopyButton label="Copy the change" text={() => preview.diff} />
                </p>
              </Callout>
            )}
          </>
        )}
        {problem !== "" && (
          <div role="alert">
            <Callout tone="danger" title={problem} testId="access-problem" />
          </div>
        )}
      </div>
    </Dialog>
  );
}

import { Icon } from "../../components/Icon";
import { useConsole } from "../model";
import { hashOf } from "../route";
import type { Notice, TreeModel } from "./model";

const TITLES: Record<Notice["kind"], string> = {
  conflict: "Someone was faster",
  approval: "Waits for an approval",
  unknown: "No answer",
  refused: "Refused",
};

/** What came of the last change that did not simply succeed. */
export function NoticeBar({ model }: { model: TreeModel }) {
  const console = useConsole();
  const notice = model.notice.value;
  const approve = async (id: string, again: () => void): Promise<void> => {
    try {
      console.put(await console.api.decide(id, { approve: true }));
      again();
    } catch (error) {
      console.say(error instanceof Error ? error.message : String(error));
    }
  };
  if (!notice) return null;
  const tone = notice.kind === "refused" ? "danger" : notice.kind === "approval" ? "info" : "warning";
  return (
    <div class={`callout ${tone} notice-bar`} role="alert" data-testid="notice" data-kind={notice.kind}>
      <Icon name={tone === "info" ? "info" : "warning"} />
      <div class="callout-text">
        <p class="callout-title">
          {notice.title}: {TITLES[notice.kind].toLowerCase()}
        </p>
        <p class="pre">
          {notice.kind === "approval" && notice.approved !== null
            ? notice.approved
              ? "Approved: it can run now."
              : "Rejected."
            : notice.kind === "approval"
              ? "This needs an approval, and you may give it."
              : notice.message}
        </p>
        <p class="actions">
          {notice.kind === "approval" && notice.approved === null && (
            <>
              <button
                type="button"
                class="button small primary"
                data-testid="approve-and-run"
                onClick={() => void approve(notice.id, notice.again)}
              >
                Approve and run
              </button>
              <a class="button small" href={hashOf("approvals", notice.id)}>
                Look at it first
              </a>
            </>
          )}
          {notice.kind !== "refused" && !(notice.kind === "approval" && notice.approved !== true) && (
            <button type="button" class="button small" data-testid="again" onClick={notice.again}>
              {notice.kind === "conflict"
                ? "Do it all the same"
                : notice.kind === "approval"
                  ? "Run it now"
                  : "Try again"}
            </button>
          )}
          <button
            type="button"
            class="button small ghost"
            data-testid="dismiss"
            onClick={() => (model.notice.value = null)}
          >
            {notice.kind === "conflict" ? "Leave it" : "Close"}
          </button>
        </p>
      </div>
    </div>
  );
}

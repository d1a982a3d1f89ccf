import { Empty } from "../../components/Notice";
import { useNow } from "../../components/useNow";
import { ago, plural } from "../../lib/format";
import { actorOf } from "../news";
import { hashOf } from "../route";
import type { TreeModel } from "./model";

const NAMED = 4;

/** Who changed what, since the page was opened. */
export function Changes({ model, onChoose }: { model: TreeModel; onChoose: (id: string) => void }) {
  const now = useNow();
  const changes = model.changes.value;
  if (changes.length === 0) {
    return (
      <Empty icon="clock" title="Nothing changed yet">
        <p>Whatever agents do to the tree from now on shows here, and lights up in the tree.</p>
      </Empty>
    );
  }
  return (
    <ol class="lines" data-testid="changes">
      {changes.map((change, index) => (
        <li key={`${change.at}-${index}`} class="item change">
          <span class="item-what">
            <strong>{actorOf(change)}</strong>{" "}
            {change.callId === "" ? (
              <code>{change.tool}</code>
            ) : (
              <a href={hashOf("calls", change.callId)} title="What this call did">
                <code>{change.tool}</code>
              </a>
            )}
            <span class="why">
              {change.nodeIds.slice(0, NAMED).map((id) => (
                <button key={id} type="button" class="link-button" onClick={() => onChoose(id)}>
                  {model.forest.name(id)}
                </button>
              ))}
              {change.nodeIds.length > NAMED && (
                <span class="quiet"> and {plural(change.nodeIds.length - NAMED, "other node")}</span>
              )}
            </span>
          </span>
          <span class="meta">{ago(change.at, now)}</span>
        </li>
      ))}
    </ol>
  );
}

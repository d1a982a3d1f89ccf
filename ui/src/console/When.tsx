import { ago } from "../lib/format";
import { exact } from "./moment";

/** A moment as people say it; the exact one on hover, and for screen readers. */
export function When({ at, now }: { at: number; now: number }) {
  return (
    <time dateTime={Number.isFinite(at) ? new Date(at).toISOString() : undefined} title={exact(at)}>
      {ago(at, now)}
    </time>
  );
}

/** The last hour of calls, minute by minute, with the quiet minutes filled in. */
import type { Minute } from "./facts";

export const MINUTES = 60;

export interface Traffic {
  minutes: Minute[];
  /** The busiest minute. */
  peak: number;
  calls: number;
  failures: number;
  refusals: number;
}

export function trafficOf(told: readonly Minute[], now: number): Traffic {
  const last = Math.floor(now / 60_000) * 60;
  const known = new Map(told.map((minute) => [minute.minute, minute]));
  const minutes = Array.from({ length: MINUTES }, (_, index) => {
    const minute = last - (MINUTES - 1 - index) * 60;
    return known.get(minute) ?? quiet(minute);
  });
  const sum = (key: "calls" | "failures" | "refusals"): number =>
    minutes.reduce((total, minute) => total + minute[key], 0);
  return {
    minutes,
    peak: Math.max(...minutes.map((minute) => minute.calls)),
    calls: sum("calls"),
    failures: sum("failures"),
    refusals: sum("refusals"),
  };
}

function quiet(minute: number): Minute {
  return { minute, calls: 0, failures: 0, refusals: 0, waiting: 0, meanMs: 0, slowestMs: 0 };
}

/** A round number at or above the peak, for the top of a chart. */
export function ceilingOf(peak: number): number {
  const scale = 10 ** Math.floor(Math.log10(Math.max(peak, 1)));
  return ([1, 2, 5, 10].find((step) => step * scale >= peak) ?? 10) * scale;
}

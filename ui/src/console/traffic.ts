/** Calls over time, with the quiet stretches filled in. */
import type { Minute } from "./facts";

export const MINUTES = 60;
const DAY_STEP = 20;

export interface Traffic {
  minutes: Minute[];
  /** How many minutes each of them stands for. */
  step: number;
  /** The busiest. */
  peak: number;
  calls: number;
  failures: number;
  refusals: number;
  waiting: number;
  cancelled: number;
}

/** The last hour by minutes. */
export function trafficOf(told: readonly Minute[], now: number): Traffic {
  return traffic(told, now, MINUTES, 1);
}

/** The last day by thirds of an hour. */
export function dayOf(told: readonly Minute[], now: number): Traffic {
  return traffic(told, now, (24 * 60) / DAY_STEP, DAY_STEP);
}

function traffic(told: readonly Minute[], now: number, count: number, step: number): Traffic {
  const length = step * 60;
  const last = Math.floor(now / 1_000 / length) * length;
  const known = new Map<number, Minute>();
  for (const minute of told) {
    const start = Math.floor(minute.minute / length) * length;
    known.set(start, joined(known.get(start) ?? quiet(start), minute));
  }
  const minutes = Array.from({ length: count }, (_, index) => {
    const start = last - (count - 1 - index) * length;
    return known.get(start) ?? quiet(start);
  });
  const sum = (key: "calls" | "failures" | "refusals" | "waiting" | "cancelled"): number =>
    minutes.reduce((total, minute) => total + minute[key], 0);
  return {
    minutes,
    step,
    peak: Math.max(...minutes.map((minute) => minute.calls)),
    calls: sum("calls"),
    failures: sum("failures"),
    refusals: sum("refusals"),
    waiting: sum("waiting"),
    cancelled: sum("cancelled"),
  };
}

function joined(a: Minute, b: Minute): Minute {
  const calls = a.calls + b.calls;
  return {
    minute: a.minute,
    calls,
    failures: a.failures + b.failures,
    refusals: a.refusals + b.refusals,
    waiting: a.waiting + b.waiting,
    cancelled: a.cancelled + b.cancelled,
    meanMs: calls === 0 ? 0 : (a.meanMs * a.calls + b.meanMs * b.calls) / calls,
    slowestMs: Math.max(a.slowestMs, b.slowestMs),
  };
}

function quiet(minute: number): Minute {
  return { minute, calls: 0, failures: 0, refusals: 0, waiting: 0, cancelled: 0, meanMs: 0, slowestMs: 0 };
}

/** A round number at or above the peak, for the top of a chart. */
export function ceilingOf(peak: number): number {
  const scale = 10 ** Math.floor(Math.log10(Math.max(peak, 1)));
  return ([1, 2, 5, 10].find((step) => step * scale >= peak) ?? 10) * scale;
}

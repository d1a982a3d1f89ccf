import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { duration, plural } from "../lib/format";
import type { Minute } from "./facts";
import { clock } from "./moment";
import { ceilingOf, type Traffic } from "./traffic";

const HEIGHT = 132;
const LEFT = 40;
const BASE = HEIGHT - 18;
const TOP = 8;

export type Measure = "calls" | "latency";

/** Calls as stacked bars, or how long they took; a bar leads to its calls. */
export function TrafficChart({
  traffic,
  measure,
  onOpen,
}: {
  traffic: Traffic;
  measure: Measure;
  onOpen: (from: number, until: number) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(720);
  const [hovered, setHovered] = useState<number | null>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setWidth(Math.max(240, element.clientWidth)));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const { minutes } = traffic;
  const peak = measure === "calls" ? traffic.peak : Math.max(...minutes.map((minute) => minute.slowestMs));
  const ceiling = ceilingOf(peak);
  const step = (width - LEFT) / minutes.length;
  const height = (amount: number): number => (amount / ceiling) * (BASE - TOP);
  const span = traffic.step === 1 ? "the last hour" : "the last day";
  const said = `Calls in ${span}: ${plural(traffic.calls, "call")}, ${traffic.waiting} waiting, ${plural(traffic.refusals, "refusal")}, ${plural(traffic.failures, "failure")}`;
  const shown = hovered === null ? null : minutes[hovered];
  return (
    <div ref={box} class="chart-box">
      <svg class="chart" viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={said} data-testid="traffic">
        {[ceiling, ceiling / 2, 0].map((line) => (
          <g key={line}>
            <line class="chart-line" x1={LEFT} x2={width} y1={BASE - height(line)} y2={BASE - height(line)} />
            <text class="chart-text" x={LEFT - 6} y={BASE - height(line) + 4} text-anchor="end">
              {measure === "latency" ? (line === 0 ? "0" : duration(line)) : whole(line)}
            </text>
          </g>
        ))}
        {minutes.map((minute, index) => {
          const x = LEFT + index * step + 1;
          const thick = Math.max(step - 2, 1.5);
          let y = BASE;
          return (
            // For the mouse; the same calls are in the audit log, with filters for the keyboard.
            <g
              key={minute.minute}
              data-testid="bar"
              data-calls={minute.calls}
              onMouseEnter={() => setHovered(index)}
              onMouseLeave={() => setHovered(null)}
              onClick={() => onOpen(minute.minute, minute.minute + traffic.step * 60)}
            >
              <rect class="chart-ground" x={x - 1} width={step} y={TOP} height={BASE - TOP} />
              {partsOf(minute, measure).map(([kind, amount]) => {
                y -= height(amount);
                return (
                  amount > 0 && (
                    <rect
                      key={kind}
                      class={`chart-bar ${kind}`}
                      x={x}
                      width={thick}
                      y={y}
                      height={Math.max(height(amount), 1)}
                      rx="1.5"
                    />
                  )
                );
              })}
            </g>
          );
        })}
        {[0, 1 / 3, 2 / 3].map((part) => {
          const index = Math.floor(part * minutes.length);
          return (
            <text key={part} class="chart-text" x={LEFT + index * step} y={HEIGHT - 3}>
              {clock((minutes[index]?.minute ?? 0) * 1_000)}
            </text>
          );
        })}
        <text class="chart-text" x={width} y={HEIGHT - 3} text-anchor="end">
          now
        </text>
      </svg>
      {shown && hovered !== null && (
        <div
          class="chart-tip"
          style={
            hovered < minutes.length / 2
              ? { left: `${LEFT + (hovered + 1) * step + 6}px` }
              : { right: `${width - LEFT - hovered * step + 6}px` }
          }
          data-testid="chart-tip"
        >
          <strong>
            {clock(shown.minute * 1_000)}
            {traffic.step > 1 && `–${clock((shown.minute + traffic.step * 60) * 1_000)}`}
          </strong>
          <span>{plural(shown.calls, "call")}</span>
          {shown.waiting > 0 && <span>{shown.waiting} waiting</span>}
          {shown.refusals > 0 && <span>{shown.refusals} refused</span>}
          {shown.failures > 0 && <span>{shown.failures} failed</span>}
          {shown.cancelled > 0 && <span>{shown.cancelled} cancelled</span>}
          {shown.calls > 0 && (
            <span>
              {duration(shown.meanMs)} on average, slowest {duration(shown.slowestMs)}
            </span>
          )}
        </div>
      )}
    </div>
  );
}

function partsOf(minute: Minute, measure: Measure): [string, number][] {
  if (measure === "latency")
    return [
      ["good", minute.meanMs],
      ["slow", minute.slowestMs - minute.meanMs],
    ];
  return [
    ["good", minute.calls - minute.failures - minute.refusals - minute.waiting - minute.cancelled],
    ["slow", minute.cancelled],
    ["waiting", minute.waiting],
    ["refused", minute.refusals],
    ["failed", minute.failures],
  ];
}

function whole(line: number): string {
  return Number.isInteger(line) ? line.toLocaleString("en") : "";
}

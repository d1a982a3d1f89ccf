import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { plural } from "../lib/format";
import { clock } from "./moment";
import { ceilingOf, MINUTES, type Traffic } from "./traffic";

const HEIGHT = 132;
const LEFT = 34;
const BASE = HEIGHT - 18;
const TOP = 8;

/** Calls per minute as stacked bars: what succeeded, what was refused, what failed. */
export function TrafficChart({ traffic }: { traffic: Traffic }) {
  const box = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(720);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setWidth(Math.max(240, element.clientWidth)));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const ceiling = ceilingOf(traffic.peak);
  const step = (width - LEFT) / MINUTES;
  const height = (amount: number): number => (amount / ceiling) * (BASE - TOP);
  const said = `Calls per minute in the last hour: ${plural(traffic.calls, "call")}, ${plural(traffic.refusals, "refusal")}, ${plural(traffic.failures, "failure")}, at most ${traffic.peak} in a minute`;
  return (
    <svg ref={box} class="chart" viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={said} data-testid="traffic">
      {[ceiling, ceiling / 2, 0].map((line) => (
        <g key={line}>
          <line class="chart-line" x1={LEFT} x2={width} y1={BASE - height(line)} y2={BASE - height(line)} />
          <text class="chart-text" x={LEFT - 6} y={BASE - height(line) + 4} text-anchor="end">
            {Number.isInteger(line) ? line.toLocaleString("en") : ""}
          </text>
        </g>
      ))}
      {traffic.minutes.map((minute, index) => {
        const x = LEFT + index * step + 1;
        const thick = Math.max(step - 2, 1.5);
        const parts: [string, number][] = [
          ["good", minute.calls - minute.failures - minute.refusals],
          ["refused", minute.refusals],
          ["failed", minute.failures],
        ];
        let y = BASE;
        return (
          <g key={minute.minute}>
            <title>{`${clock(minute.minute * 1_000)}: ${plural(minute.calls, "call")}, ${minute.refusals} refused, ${minute.failures} failed`}</title>
            <rect class="chart-ground" x={x - 1} width={step} y={TOP} height={BASE - TOP} />
            {parts.map(([kind, amount]) => {
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
      {[0, 20, 40].map((index) => (
        <text key={index} class="chart-text" x={LEFT + index * step} y={HEIGHT - 3}>
          {clock((traffic.minutes[index]?.minute ?? 0) * 1_000)}
        </text>
      ))}
      <text class="chart-text" x={width} y={HEIGHT - 3} text-anchor="end">
        now
      </text>
    </svg>
  );
}

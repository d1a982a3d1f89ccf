interface Props {
  label: string;
  value: number | null;
  /** Null when nobody knows how much there is to do. */
  total: number | null;
}

export function ProgressBar({ label, value, total }: Props) {
  const known = value !== null && total !== null && total > 0;
  const percent = known ? Math.max(0, Math.min(100, (value / total) * 100)) : 0;
  return (
    <div class="progress">
      <div
        class={`bar ${known ? "" : "endless"}`}
        role="progressbar"
        aria-label={label}
        {...(known ? { "aria-valuenow": Math.round(percent), "aria-valuemin": 0, "aria-valuemax": 100 } : {})}
      >
        {/* Set through the CSSOM: the page's CSP allows no style attribute. */}
        <div class="bar-fill" ref={(fill) => void fill?.style.setProperty("--done", `${percent}%`)} />
      </div>
      <span class="meta" aria-hidden="true">
        {known ? `${Math.round(percent)} %` : value !== null && value > 0 ? value.toLocaleString("en") : ""}
      </span>
    </div>
  );
}

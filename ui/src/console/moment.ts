/** Moments in words, in the reader's own time zone. */
export function clock(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

export function exact(at: number): string {
  return new Date(at).toLocaleString("en-GB", {
    year: "numeric",
    month: "short",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  });
}

/** How long until then, or how long ago. */
export function until(at: number, now: number): string {
  const seconds = Math.round((at - now) / 1_000);
  if (seconds <= 0) return "expired";
  if (seconds < 90) return `${seconds} s left`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min left` : `${Math.round(minutes / 60)} h left`;
}

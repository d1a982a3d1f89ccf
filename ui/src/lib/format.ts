/** Quantities in words for people. */
export function duration(milliseconds: number): string {
  if (milliseconds > 0 && milliseconds < 0.95) return `${milliseconds.toFixed(2)} ms`;
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(milliseconds < 10_000 ? 2 : 1)} s`;
  const minutes = Math.floor(milliseconds / 60_000);
  return `${minutes} min ${Math.floor((milliseconds % 60_000) / 1_000)} s`;
}

export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

export function plural(amount: number, noun: string, many = `${noun}s`): string {
  return `${amount.toLocaleString("en")} ${amount === 1 ? noun : many}`;
}

export function ago(then: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - then) / 1_000));
  if (seconds < 45) return "just now";
  if (seconds < 3_600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3_600)} h ago`;
  const year = new Date(then).getFullYear() === new Date(now).getFullYear() ? undefined : "numeric";
  return new Date(then).toLocaleString("en-GB", {
    year,
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
  });
}

export function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

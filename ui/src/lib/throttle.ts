/** Runs an action soon after it is wished for, at most once per interval however often it is wished for. */
export function throttled(action: () => unknown, interval: number, lead = 0): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let last = -Infinity;
  return () => {
    if (timer !== undefined) return;
    timer = setTimeout(
      () => {
        timer = undefined;
        last = Date.now();
        action();
      },
      Math.max(lead, last + interval - Date.now()),
    );
  };
}

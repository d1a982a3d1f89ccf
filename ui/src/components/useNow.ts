import { useEffect, useState } from "preact/hooks";

/** The time, as often as asked for, while the component is on screen. */
export function useNow(every = 10_000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

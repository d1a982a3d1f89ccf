/** What the documentation of this version has. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type * as api from "./api-types";
import { useConsole } from "./model";

export type ManualEntry = api.ManualEntry;

/** Read once: it does not change while a gateway runs. */
const known = signal<ManualEntry[]>([]);

export function useContents(): ManualEntry[] {
  const console = useConsole();
  useEffect(() => {
    if (known.peek().length > 0) return;
    console.api
      .manual()
      .then((found) => (known.value = found))
      .catch(() => undefined);
  }, []);
  return known.value;
}

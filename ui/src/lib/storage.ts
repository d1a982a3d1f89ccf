/** A place for small texts; the browser's own may be full, blocked or absent, and then forgets. */
export interface Storage {
  read(key: string): string | null;
  write(key: string, text: string): void;
  remove(key: string): void;
}

/** Kept by the browser until someone clears it. */
export const browserStorage: Storage = kept(() => localStorage);

/** Kept as long as the tab is open, and for this tab alone. */
export const tabStorage: Storage = kept(() => sessionStorage);

function kept(area: () => globalThis.Storage): Storage {
  return {
    read: (key) => attempt(() => area().getItem(key)) ?? null,
    write: (key, text) => void attempt(() => area().setItem(key, text)),
    remove: (key) => void attempt(() => area().removeItem(key)),
  };
}

export function memoryStorage(): Storage {
  const texts = new Map<string, string>();
  return {
    read: (key) => texts.get(key) ?? null,
    write: (key, text) => void texts.set(key, text),
    remove: (key) => void texts.delete(key),
  };
}

function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}

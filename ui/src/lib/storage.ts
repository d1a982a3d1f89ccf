/** A place for small texts; the browser's own may be full, blocked or absent, and then forgets. */
export interface Storage {
  read(key: string): string | null;
  write(key: string, text: string): void;
  remove(key: string): void;
}

export const browserStorage: Storage = {
  read: (key) => attempt(() => localStorage.getItem(key)) ?? null,
  write: (key, text) => void attempt(() => localStorage.setItem(key, text)),
  remove: (key) => void attempt(() => localStorage.removeItem(key)),
};

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

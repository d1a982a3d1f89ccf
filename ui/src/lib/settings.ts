/** What this browser remembers about the page's looks and keys. */
import { effect, type Signal, signal } from "@preact/signals";
import type { Storage } from "./storage";

export type Theme = "system" | "light" | "dark";

export class Settings {
  readonly theme: Signal<Theme>;
  /** Whether “/” and “?” act alone; people who speak to their computer may need them off. */
  readonly singleKeys: Signal<boolean>;

  constructor(storage: Storage, root: HTMLElement) {
    const stored = storage.read("toolgrove.theme");
    this.theme = signal(stored === "light" || stored === "dark" ? stored : "system");
    this.singleKeys = signal(storage.read("toolgrove.single-keys") !== "off");
    effect(() => {
      root.dataset.theme = this.theme.value;
      storage.write("toolgrove.theme", this.theme.value);
    });
    effect(() => storage.write("toolgrove.single-keys", this.singleKeys.value ? "on" : "off"));
  }
}

import type { Signal } from "@preact/signals";
import type { Theme } from "../lib/settings";
import { Icon, type IconName } from "./Icon";

const THEMES: [Theme, IconName, string][] = [
  ["system", "screen", "System theme"],
  ["light", "sun", "Light theme"],
  ["dark", "moon", "Dark theme"],
];

export function ThemeSwitch({ theme }: { theme: Signal<Theme> }) {
  return (
    <fieldset class="themes">
      <legend class="visually-hidden">Theme</legend>
      {THEMES.map(([name, icon, label]) => (
        <label key={name} class="theme" title={label}>
          <input
            type="radio"
            name="theme"
            aria-label={label}
            checked={theme.value === name}
            onChange={() => (theme.value = name)}
          />
          <Icon name={icon} />
        </label>
      ))}
    </fieldset>
  );
}

import type { Signal } from "@preact/signals";
import type { Theme } from "../lib/settings";
import { Icon, type IconName } from "./Icon";
import { IconButton } from "./IconButton";

const THEMES: [Theme, IconName, string][] = [
  ["system", "screen", "System theme"],
  ["light", "sun", "Light theme"],
  ["dark", "moon", "Dark theme"],
];

export function ThemeSwitch({ theme }: { theme: Signal<Theme> }) {
  const at = THEMES.findIndex(([name]) => name === theme.value);
  const [, icon, label] = THEMES[at] ?? ["system", "screen", "System theme"];
  const [next, , promised] = THEMES[(at + 1) % THEMES.length] ?? ["system", "screen", "System theme"];
  return (
    <>
      <IconButton
        icon={icon}
        class="narrow-only"
        label={`${label}; switch to ${promised.toLowerCase()}`}
        onClick={() => (theme.value = next)}
      />
      <Choices theme={theme} />
    </>
  );
}

function Choices({ theme }: { theme: Signal<Theme> }) {
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

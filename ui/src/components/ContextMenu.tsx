import { useLayoutEffect, useRef } from "preact/hooks";

export interface MenuItem {
  label: string;
  keys?: string;
  tone?: "danger";
  run: () => void;
}

/** A menu at the pointer, or at what has focus; arrow keys walk it, Escape closes it. */
export function ContextMenu({
  at,
  label,
  items,
  onClose,
}: {
  at: { x: number; y: number };
  label: string;
  items: MenuItem[];
  onClose: () => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const menu = box.current;
    if (!menu) return;
    const back = document.activeElement as HTMLElement | null;
    const { width, height } = menu.getBoundingClientRect();
    menu.style.setProperty("left", `${Math.max(8, Math.min(at.x, innerWidth - width - 8))}px`);
    menu.style.setProperty("top", `${Math.max(8, Math.min(at.y, innerHeight - height - 8))}px`);
    menu.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const away = (event: Event): void => {
      if (!menu.contains(event.target as Node)) onClose();
    };
    document.addEventListener("pointerdown", away);
    return () => {
      document.removeEventListener("pointerdown", away);
      if (menu.contains(document.activeElement) || document.activeElement === document.body) back?.focus();
    };
  }, []);
  const walk = (event: KeyboardEvent): void => {
    const all = [...(box.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const here = all.indexOf(document.activeElement as HTMLElement);
    const steps: Record<string, number> = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: all.length - 1 };
    event.stopPropagation();
    if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      onClose();
    } else if (Object.hasOwn(steps, event.key)) {
      event.preventDefault();
      all[((steps[event.key] ?? 0) + all.length) % all.length]?.focus();
    }
  };
  return (
    <div ref={box} class="menu" role="menu" aria-label={label} data-testid="context-menu" onKeyDown={walk}>
      {items.map((item) => (
        <button
          key={item.label}
          type="button"
          role="menuitem"
          tabIndex={-1}
          class={item.tone ?? ""}
          onClick={() => {
            onClose();
            item.run();
          }}
        >
          <span>{item.label}</span>
          {item.keys && <kbd>{item.keys}</kbd>}
        </button>
      ))}
    </div>
  );
}

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "./Icon";

interface Props {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  footer?: ComponentChildren;
  kind?: "modal" | "sheet";
  tone?: "plain" | "danger";
  testId?: string;
}

/** A modal dialog: the browser traps focus, closes on Escape and gives focus back. */
export function Dialog({ title, onClose, children, footer, kind = "modal", tone = "plain", testId }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const heading = useId();
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    (dialog?.querySelector<HTMLElement>("[data-autofocus]") ?? dialog?.querySelector<HTMLElement>("h2"))?.focus();
    return () => dialog?.close();
  }, []);
  useLayoutEffect(() => {
    const text = body.current;
    if (text === null) return;
    // Who has no mouse scrolls a long text by keys; some of it comes late.
    const measure = () => {
      text.tabIndex = text.scrollHeight > text.clientHeight ? 0 : -1;
    };
    const watch = new MutationObserver(measure);
    watch.observe(text, { childList: true, subtree: true, characterData: true });
    measure();
    return () => watch.disconnect();
  }, []);
  return (
    <dialog
      ref={ref}
      class={`dialog ${kind} ${tone}`}
      aria-labelledby={heading}
      data-testid={testId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === ref.current) onClose();
      }}
    >
      <div class="dialog-box">
        <header class="dialog-head">
          <h2 id={heading} tabIndex={-1}>
            {title}
          </h2>
          <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </header>
        <div class="dialog-body" ref={body}>
          {children}
        </div>
        {footer && <footer class="dialog-foot">{footer}</footer>}
      </div>
    </dialog>
  );
}

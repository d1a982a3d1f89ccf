import type { ComponentChildren } from "preact";

/** A titled part of a page. */
export function Card({
  title,
  end,
  children,
  testId,
}: {
  title: string;
  end?: ComponentChildren;
  children: ComponentChildren;
  testId?: string;
}) {
  return (
    <section class="card" aria-label={title} data-testid={testId}>
      <div class="card-head">
        <h2>{title}</h2>
        {end}
      </div>
      {children}
    </section>
  );
}

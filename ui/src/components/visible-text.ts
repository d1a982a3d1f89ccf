import { options, type VNode } from "preact";
import { visible } from "../lib/visible";

const SAID = ["title", "aria-label"];

/** From now on no text that is rendered hides: neither what elements hold nor what they are called. Fields keep theirs. */
export function renderVisibly(): void {
  const earlier = options.vnode;
  options.vnode = (node) => {
    const { type, props } = node as { type: unknown; props: unknown };
    if (typeof props === "string") node.props = visible(props) as unknown as VNode["props"];
    else if (typeof type === "string") makeVisible(props as Record<string, unknown>);
    earlier?.(node);
  };
}

function makeVisible(props: Record<string, unknown>): void {
  for (const name of SAID) {
    const said = props[name];
    if (typeof said === "string") props[name] = visible(said);
  }
}

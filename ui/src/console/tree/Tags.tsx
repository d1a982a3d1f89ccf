import { useState } from "preact/hooks";
import { Icon } from "../../components/Icon";
import { texts } from "../facts";
import type { TreeModel } from "./model";
import { type Item, nameOf } from "./node";

/** The tags of a node, to add to and to take away. */
export function Tags({ model, item }: { model: TreeModel; item: Item }) {
  const tags = model.tags.value;
  const mayTag = model.has("tag_node");
  const [text, setText] = useState("");
  if (tags === null && !mayTag) return null;
  const change = async (add: string[], remove: string[]): Promise<void> => {
    const answer = await model.act({
      tool: "tag_node",
      args: { nodeId: item.id, tags: add, remove },
      title: `Tag ${nameOf(item)}`,
      basis: { item, still: () => true },
    });
    if (answer && model.selected.peek() === item.id) model.tags.value = texts(answer, "tags");
  };
  return (
    <section aria-label="Tags" class="node-tags" data-testid="tags">
      {(tags ?? []).map((tag) => (
        <span key={tag} class="chip still">
          <span class="chip-text">{tag}</span>
          {mayTag && (
            <button
              type="button"
              class="chip-button"
              aria-label={`Remove the tag ${tag}`}
              onClick={() => void change([], [tag])}
            >
              <Icon name="close" size={12} />
            </button>
          )}
        </span>
      ))}
      {mayTag && (
        <form
          class="tag-form"
          onSubmit={(event) => {
            event.preventDefault();
            const tag = text.trim();
            if (tag === "") return;
            setText("");
            void change([tag], []);
          }}
        >
          <Icon name="tag" size={14} />
          <input
            class="input"
            aria-label="Add a tag"
            placeholder="Add a tag"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </form>
      )}
    </section>
  );
}

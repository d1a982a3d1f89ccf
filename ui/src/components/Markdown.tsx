import { Fragment, h } from "preact";
import { useMemo } from "preact/hooks";
import { type Block, parseMarkdown } from "../lib/markdown";
import type { Inline } from "../lib/markdown-inline";

/** Markdown as elements. Headings start below the page's own, at `top`. */
export function Markdown({ source, top = 3 }: { source: string; top?: number }) {
  const blocks = useMemo(() => parseMarkdown(source), [source]);
  return (
    <div class="prose">
      <Blocks blocks={blocks} top={top} />
    </div>
  );
}

function Blocks({ blocks, top }: { blocks: Block[]; top: number }) {
  return (
    <>
      {blocks.map((block, index) => (
        <BlockView key={index} block={block} top={top} />
      ))}
    </>
  );
}

function BlockView({ block, top }: { block: Block; top: number }) {
  switch (block.type) {
    case "heading":
      return h(
        `h${Math.min(block.level + top - 1, 6)}`,
        { class: `prose-h${block.level}` },
        <Inlines nodes={block.text} />,
      );
    case "paragraph":
      return (
        <p>
          <Inlines nodes={block.text} />
        </p>
      );
    case "code":
      return (
        <pre class="code" tabIndex={0} role="region" aria-label={block.language ? `${block.language} code` : "Code"}>
          <code>{block.text}</code>
        </pre>
      );
    case "quote":
      return (
        <blockquote>
          <Blocks blocks={block.blocks} top={top} />
        </blockquote>
      );
    case "list": {
      const items = block.items.map((item, index) => (
        <li key={index}>
          <ItemBlocks blocks={item} top={top} />
        </li>
      ));
      return block.ordered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Table">
          <table>
            <thead>
              <tr>
                {block.head.map((cell, index) => (
                  <th key={index} scope="col">
                    <Inlines nodes={cell} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, column) => (
                    <td key={column}>
                      <Inlines nodes={cell} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr />;
  }
}

/** A list item of one paragraph stands tight, without the paragraph's margins. */
function ItemBlocks({ blocks, top }: { blocks: Block[]; top: number }) {
  const [first, ...rest] = blocks;
  if (first?.type !== "paragraph") return <Blocks blocks={blocks} top={top} />;
  return (
    <>
      <Inlines nodes={first.text} />
      <Blocks blocks={rest} top={top} />
    </>
  );
}

function Inlines({ nodes }: { nodes: Inline[] }) {
  return (
    <>
      {nodes.map((node, index) => (
        <Fragment key={index}>
          <InlineView node={node} />
        </Fragment>
      ))}
    </>
  );
}

function InlineView({ node }: { node: Inline }) {
  switch (node.type) {
    case "text":
      return <>{node.text}</>;
    case "code":
      return <code>{node.text}</code>;
    case "break":
      return <br />;
    case "link":
      return (
        <a href={node.href} {...(node.href.startsWith("#") ? {} : { target: "_blank", rel: "noopener noreferrer" })}>
          <Inlines nodes={node.children} />
        </a>
      );
    case "strong":
      return (
        <strong>
          <Inlines nodes={node.children} />
        </strong>
      );
    case "emphasis":
      return (
        <em>
          <Inlines nodes={node.children} />
        </em>
      );
    case "strike":
      return (
        <s>
          <Inlines nodes={node.children} />
        </s>
      );
  }
}

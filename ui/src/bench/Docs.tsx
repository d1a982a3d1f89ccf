import { Badge, badgesOf } from "../components/Badge";
import { JsonText } from "../components/JsonText";
import { Markdown } from "../components/Markdown";
import type { JsonObject } from "../lib/json";
import type { ToolDetail } from "../lib/tool";

/** What the tool says about itself: its documentation, its annotations explained, its examples. */
export function Docs({ tool, onTry }: { tool: ToolDetail; onTry: (inputs: JsonObject) => void }) {
  const badges = badgesOf(tool);
  return (
    <div class="stack">
      <section class="card" aria-label="Documentation" data-testid="documentation">
        <div class="card-body roomy">
          {tool.documentation ? (
            <Markdown source={tool.documentation} top={2} />
          ) : (
            <p class="quiet">This tool comes without further documentation.</p>
          )}
        </div>
      </section>
      {badges.length > 0 && (
        <section class="card" aria-label="Behaviour">
          <div class="card-head">
            <h2>Behaviour</h2>
          </div>
          <dl class="meanings">
            {badges.map((badge) => (
              <div key={badge.text}>
                <dt>
                  <Badge {...badge} />
                </dt>
                <dd>{badge.meaning}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {tool.examples.map((example, index) => (
        <section key={index} class="card" aria-label={`Example: ${example.title}`} data-testid="example">
          <div class="card-head">
            <h2>{example.title}</h2>
            <button
              type="button"
              class="button small"
              aria-label={`Try it: ${example.title}`}
              onClick={() => onTry(example.inputs)}
            >
              Try it
            </button>
          </div>
          <div class="card-body">
            {example.description && <p class="quiet">{example.description}</p>}
            <p class="eyebrow">Arguments</p>
            <JsonText value={example.inputs} label={`Arguments of ${example.title}`} />
            {example.output !== undefined && (
              <>
                <p class="eyebrow">Result</p>
                <JsonText value={example.output} label={`Result of ${example.title}`} />
              </>
            )}
          </div>
        </section>
      ))}
    </div>
  );
}

import { useState } from "preact/hooks";
import { CopyButton } from "../components/CopyButton";
import { Coloured } from "../components/JsonText";
import { Tabs } from "../components/Tabs";
import { type CallSite, curl, jsonRpc, plainCurl, python } from "../lib/snippet";
import { type Opened, useBench } from "./bench";

const LANGUAGES: Record<Language, { label: string; write: (site: CallSite) => string }> = {
  curl: { label: "cURL", write: curl },
  python: { label: "Python", write: python },
  jsonrpc: { label: "MCP JSON-RPC", write: jsonRpc },
};

type Language = "curl" | "python" | "jsonrpc";

/** The same call for a terminal, a program or an MCP client. */
export function CodePanel({ opened }: { opened: Opened }) {
  const { mcpUrl, callUrl, needsToken } = useBench().reach.value;
  const [language, setLanguage] = useState<Language>("curl");
  const call = { tool: opened.tool, args: opened.draft.value.value };
  const { label, write } = LANGUAGES[language];
  const text =
    mcpUrl === undefined ? plainCurl(callUrl(opened.tool.name), call) : write({ mcpUrl, needsToken, ...call });
  const languages = (Object.keys(LANGUAGES) as Language[]).filter((name) => name === "curl" || mcpUrl !== undefined);
  return (
    <Tabs
      label="Language"
      current={language}
      onSelect={setLanguage}
      tabs={languages.map((name) => ({ name, label: LANGUAGES[name].label }))}
      end={<CopyButton label={`Copy ${label}`} text={() => text} testId="copy-code" />}
    >
      <pre class="code" tabIndex={0} role="region" aria-label={`${label} code`} data-testid="code">
        <code>
          <Coloured text={text.slice(0, 40_000)} />
        </code>
      </pre>
    </Tabs>
  );
}

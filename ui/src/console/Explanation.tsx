import { Dialog } from "../components/Dialog";
import { TITLES } from "./Nav";
import { hashOf, type View } from "./route";

/** What the words of each view mean, and the page of the documentation that says more. */
export const WORDS: Record<View, { about: string; words: [string, string][]; page: string }> = {
  overview: {
    about: "What happens in your project now: calls, sources, and what waits for you.",
    words: [
      ["Refused", "A call that was not let through: not allowed, or too many."],
      ["Waiting", "A call that a person has to approve first."],
    ],
    page: "console",
  },
  agents: {
    about: "An agent is a set of permissions that a client connects with. Its access says which tools it has, and why.",
    words: [
      ["granted", "The agent sees the tool and can call it."],
      ["asks first", "The agent can call it, and a person approves each call."],
      ["hidden", "A mask in the agent's section hides this tool of a server."],
      ["denied", "The agent's section does not list the tool, or denies it."],
      ["blocked by role", "The agent's section lists the tool, but its role may only read."],
      ["Fingerprint", "Names exactly this access. Every call records it, as its receipt."],
    ],
    page: "pool",
  },
  tree: {
    about: "The tree is a workspace that agents share: nodes with properties, tags and a history.",
    words: [
      ["Version", "What you saw when you changed something. If it changed since, you are asked."],
      ["Snapshot", "A state of the tree to compare with, and to go back to."],
    ],
    page: "tree",
  },
  approvals: {
    about: "Calls that need your approval. An approval covers exactly these arguments, unless you allow more.",
    words: [],
    page: "console",
  },
  sources: {
    about: "A source offers tools: an MCP server, an HTTP API, Python modules, or the gateway itself.",
    words: [
      ["Tool definition", "What a tool says of itself. Agents only get the definition that was accepted."],
      ["changed", "The server changed a definition: the tool is blocked until you review it."],
      ["Tokens", "About what a tool costs in the list that a model reads."],
      ["Error output", "The last lines that a server wrote to stderr, without secrets."],
    ],
    page: "pool",
  },
  audit: {
    about: "Every call and every decision. The records form a chain, so a changed or missing one shows.",
    words: [],
    page: "operations",
  },
  try: {
    about: "Run a tool as one of your agents, through the same checks as the agent's own calls.",
    words: [
      ["destructive", "It may delete or overwrite something for good."],
      ["needs approval", "The call waits under Approvals until somebody approves it."],
    ],
    page: "console",
  },
  calls: {
    about: "One call from beginning to end: what was asked, who allowed it, and what came back.",
    words: [
      ["Succeeded", "The tool ran and answered."],
      ["Waiting", "A person has to approve the call first."],
      ["Refused", "The call was not let through: not allowed, not there, or too many."],
      ["Failed", "The tool ran, or was about to, and something went wrong."],
    ],
    page: "operations",
  },
  runs: {
    about: "A run is one task that an agent worked on: what it wrote, the tools it used, and its sub-agents.",
    words: [["Usage", "The tokens that the model of the run read and wrote, as the agent reported them."]],
    page: "runs",
  },
  docs: { about: "The documentation of the version that runs here.", words: [], page: "glossary" },
  unknown: { about: "Nothing is shown at this address.", words: [], page: "concepts" },
};

export function Explanation({ view, onClose }: { view: View; onClose: () => void }) {
  const { about, words, page } = WORDS[view];
  return (
    <Dialog title={TITLES[view]} testId="explanation" onClose={onClose}>
      <div class="stack tight">
        <p>{about}</p>
        {words.length > 0 && (
          <dl class="glossary">
            {words.map(([word, meaning]) => (
              <div key={word}>
                <dt>{word}</dt>
                <dd>{meaning}</dd>
              </div>
            ))}
          </dl>
        )}
        <p>
          <a href={hashOf("docs", page)} onClick={onClose} data-testid="explained-more">
            More in the documentation
          </a>
        </p>
      </div>
    </Dialog>
  );
}

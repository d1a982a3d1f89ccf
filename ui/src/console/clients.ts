/** What to write into an MCP client so that it works as an agent. */
export interface ClientConfig {
  name: string;
  label: string;
  /** Where the text goes. */
  where: string;
  text: string;
}

/** The token is known only right after it was made: else a placeholder stands for it. */
export function clientConfigs(
  project: string,
  agent: string,
  url: string,
  needsToken: boolean,
  token = "TOKEN",
): ClientConfig[] {
  const name = `${slug(project)}-${slug(agent)}`;
  const headers = needsToken ? { headers: { Authorization: `Bearer ${token}` } } : {};
  const header = needsToken ? ` --header "Authorization: Bearer ${token}"` : "";
  return [
    {
      name: "claude-code",
      label: "Claude Code",
      where: "Run in a terminal",
      text: `claude mcp add --transport http ${name} ${url}${header}`,
    },
    {
      name: "cursor",
      label: "Cursor",
      where: "~/.cursor/mcp.json",
      text: json({ mcpServers: { [name]: { url, ...headers } } }),
    },
    {
      name: "vscode",
      label: "VS Code",
      where: ".vscode/mcp.json",
      text: json({ servers: { [name]: { type: "http", url, ...headers } } }),
    },
    {
      name: "desktop",
      label: "Claude Desktop",
      where: "claude_desktop_config.json, on the machine that holds the project",
      text: json({ mcpServers: { [name]: { command: "toolgrove", args: ["stdio", "--agent", agent] } } }),
    },
  ];
}

function slug(text: string): string {
  return text.replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "") || "toolgrove";
}

function json(value: object): string {
  return JSON.stringify(value, null, 2);
}

import { RAIL_OF } from "../../src/contract/rails.ts";
import { isLoopback } from "../../src/mail/settings.ts";
import { mcpConfigBlock } from "./config-block.ts";
import { FRAMEWORK_SNIPPETS } from "./framework-snippets.ts";

/** Instructions to try a payment, or to connect one client or framework to the MCP endpoint. */
export interface ClientConfig {
  readonly client: string;
  readonly name: string;
  readonly kind: "trial" | "mcp_client" | "framework";
  /** Destination of the text: a file, or a command line. */
  readonly place: string;
  readonly format: "json" | "toml" | "shell" | "python" | "typescript";
  /** Ready to copy once the placeholder is replaced by the agent's key. */
  readonly text: string;
  readonly remark: string | null;
}

/** Placeholder for the agent's key, which the service does not keep after delivery. */
export const KEY_PLACEHOLDER = "AGENT_KEY";

const NAME = "agent-spending-control";
/** Environment variable for clients that read the key from one. */
const VARIABLE = "AGENT_SPENDING_CONTROL_KEY";

const OVER_HTTP =
  "This address is plain http: whoever can read the network's traffic reads the agent's key. Prefer https.";

const json = (value: object): string => JSON.stringify(value, null, 2);

const bearer = `Bearer ${KEY_PLACEHOLDER}`;

/** Returns a trial request, then the configurations of clients and frameworks. */
export function clientConfigs(baseUrl: string, mcpUrl: string): readonly ClientConfig[] {
  const isExposed = isPlain(mcpUrl);
  const warning = isExposed ? OVER_HTTP : null;
  return [
    trialAt(baseUrl),
    ...clientsAt(mcpUrl, isExposed).map((config) => ({
      ...config,
      kind: "mcp_client" as const,
      remark: warning,
    })),
    ...FRAMEWORK_SNIPPETS.map(({ remark, text, ...snippet }) => ({
      ...snippet,
      kind: "framework" as const,
      text: text(`${mcpUrl}/mcp`, bearer),
      remark: warning === null ? remark : `${remark} ${warning}`,
    })),
  ];
}

function isPlain(url: string): boolean {
  const { hostname, protocol } = new URL(url);
  return protocol === "http:" && !isLoopback(hostname);
}

function trialAt(baseUrl: string): ClientConfig {
  const body = {
    rail: RAIL_OF.create_card_payment,
    merchant: "Acme",
    amountCents: 100,
    purpose: "A test",
    idempotencyKey: "try-it",
  };
  return {
    client: "curl",
    name: "Try it: a first payment by curl",
    kind: "trial",
    place: "a shell",
    format: "shell",
    text: `curl ${baseUrl}/v1/payments \\
  -H "Authorization: ${bearer}" \\
  -H "Content-Type: application/json" \\
  -d '${JSON.stringify(body)}'`,
    remark: isPlain(baseUrl) ? OVER_HTTP : null,
  };
}

function clientsAt(mcpUrl: string, isExposed: boolean): readonly Omit<ClientConfig, "kind" | "remark">[] {
  const url = `${mcpUrl}/mcp`;
  const headers = { Authorization: bearer };
  const block = json(mcpConfigBlock(mcpUrl, KEY_PLACEHOLDER));
  return [
    {
      client: "claude-code",
      name: "Claude Code",
      place: "a shell",
      format: "shell",
      text: `claude mcp add --transport http ${NAME} ${url} --header "Authorization: ${bearer}"`,
    },
    {
      client: "claude-code-project",
      name: "Claude Code, for a project",
      place: ".mcp.json",
      format: "json",
      text: block,
    },
    {
      client: "claude-desktop",
      name: "Claude Desktop",
      place: "claude_desktop_config.json",
      format: "json",
      // This client's file accepts local servers only, so npx runs a bridge to the endpoint. Arguments must not contain
      // spaces.
      text: json({
        mcpServers: {
          [NAME]: {
            command: "npx",
            args: [
              "-y",
              "mcp-remote",
              url,
              ...(isExposed ? ["--allow-http"] : []),
              "--header",
              `Authorization:\${${VARIABLE}}`,
            ],
            env: { [VARIABLE]: bearer },
          },
        },
      }),
    },
    {
      client: "cursor",
      name: "Cursor",
      place: "~/.cursor/mcp.json",
      format: "json",
      text: json({ mcpServers: { [NAME]: { url, headers } } }),
    },
    {
      client: "vscode",
      name: "Visual Studio Code",
      place: ".vscode/mcp.json",
      format: "json",
      text: json({ servers: { [NAME]: { type: "http", url, headers } } }),
    },
    {
      client: "windsurf",
      name: "Windsurf",
      place: "~/.codeium/windsurf/mcp_config.json",
      format: "json",
      text: json({ mcpServers: { [NAME]: { serverUrl: url, headers } } }),
    },
    {
      client: "zed",
      name: "Zed",
      place: "settings.json",
      format: "json",
      text: json({ context_servers: { [NAME]: { url, headers } } }),
    },
    {
      client: "codex",
      name: "Codex",
      place: "~/.codex/config.toml",
      format: "toml",
      text: `[mcp_servers.${NAME}]\nurl = "${url}"\nhttp_headers = { Authorization = "${bearer}" }\n`,
    },
    {
      client: "gemini-cli",
      name: "Gemini CLI",
      place: "~/.gemini/settings.json",
      format: "json",
      text: json({ mcpServers: { [NAME]: { httpUrl: url, headers } } }),
    },
    {
      client: "cline",
      name: "Cline",
      place: "cline_mcp_settings.json",
      format: "json",
      text: json({ mcpServers: { [NAME]: { type: "streamableHttp", url, headers } } }),
    },
  ];
}

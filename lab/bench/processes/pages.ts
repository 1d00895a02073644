import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { type Role, runRole } from "./role.ts";

export interface PagesConfig {
  readonly port: number;
  /** Of the sessions that the pages are opened by, in turn. */
  readonly tokens: readonly string[];
  readonly pages: number;
}

/** Events that reached all pages, for payments whose purpose has the time of their request. */
export interface PageEvents {
  readonly open: number;
  readonly bytes: number;
  /** From before an agent asked until its approval was on a page, for each approval and page. */
  readonly approvalsMs: readonly number[];
}

/** `asked/<milliseconds>/`: when it was asked for, by the clock of the machine. */
const ASKED = /"purpose":"asked\/(\d+)\/"/g;

const seen = { open: 0, bytes: 0, approvalsMs: [] as number[] };

/** A page that reads its stream, and parses the events of approvals alone. */
async function openPage({ port, tokens }: PagesConfig, index: number): Promise<void> {
  const headers = { authorization: `Bearer ${tokens[index % tokens.length] ?? ""}` };
  const request = get({ host: "127.0.0.1", port, path: "/v1/stream", headers, agent: false });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  if (response.statusCode !== 200) throw new Error(`a stream was answered ${String(response.statusCode)}`);
  seen.open += 1;
  const known = new Set<string>();
  response.on("data", (chunk: Buffer) => {
    seen.bytes += chunk.length;
    if (!chunk.includes("event: approvals")) return;
    const now = Date.now();
    for (const [, at = ""] of chunk.toString("utf8").matchAll(ASKED)) {
      if (known.has(at)) continue;
      known.add(at);
      seen.approvalsMs.push(now - Number(at));
    }
  });
  response.once("close", () => (seen.open -= 1));
  request.on("error", () => undefined);
}

async function start(config: PagesConfig): Promise<Role> {
  for (let index = 0; index < config.pages; index += 1) await openPage(config, index);
  return {
    port: null,
    answer: () => Promise.resolve(seen satisfies PageEvents),
    stop: () => Promise.resolve(),
  };
}

await runRole((config) => start(config as PagesConfig));

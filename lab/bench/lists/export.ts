import { get, type IncomingMessage } from "node:http";
import type { Db } from "mongodb";
import { newestFirst } from "../../../src/store/newest-first.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import type { Child } from "../child.ts";
import type { ServiceStatus } from "../processes/service.ts";

export interface ExportResult {
  readonly rows: number;
  readonly bytes: number;
  readonly rowsPerSecond: number;
  /** The driver's cursor over the same records in the same order, in a process of its own, of the same run. */
  readonly rawRowsPerSecond: number;
  /** Of the service's process: before, and the most that it was meanwhile. */
  readonly residentBytes: { readonly before: number; readonly most: number };
}

export interface Exporting {
  readonly db: Db;
  readonly organizationId: string;
  readonly port: number;
  readonly service: Child;
  readonly token: string;
}

const POLL_MS = 200;
const ANSWER_MS = 10_000;
const LINE_END = 0x0a;

/** A whole export, by the organization's key, and the bare cursor before and after it: the better of the two. */
export async function measureExport({
  db,
  organizationId,
  port,
  service,
  token,
}: Exporting): Promise<ExportResult> {
  const first = await rawRowsPerSecond(db, organizationId);
  const watch = new ResidentWatch(service);
  await watch.begin();
  const startedAt = performance.now();
  const { bytes, lines } = await download(port, token);
  const seconds = (performance.now() - startedAt) / 1_000;
  const residentBytes = await watch.end();
  const rows = lines - 1;
  const raw = Math.max(first, await rawRowsPerSecond(db, organizationId));
  return {
    rows,
    bytes,
    rowsPerSecond: rows / seconds,
    rawRowsPerSecond: raw,
    residentBytes,
  };
}

/** Asks a process for its resident memory again and again. */
class ResidentWatch {
  readonly #service: Child;
  readonly #seen: number[] = [];
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> = Promise.resolve();

  constructor(service: Child) {
    this.#service = service;
  }

  async begin(): Promise<void> {
    await this.#look();
    this.#timer = setInterval(() => {
      this.#looking = this.#looking.then(() => this.#look());
    }, POLL_MS);
  }

  async end(): Promise<ExportResult["residentBytes"]> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#looking;
    return { before: this.#seen[0] ?? Number.NaN, most: Math.max(...this.#seen) };
  }

  async #look(): Promise<void> {
    this.#seen.push((await this.#service.request<ServiceStatus>(null, ANSWER_MS)).residentBytes);
  }
}

/** No text of the bench has a line end in it. */
async function download(
  port: number,
  token: string,
): Promise<{ readonly bytes: number; readonly lines: number }> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ host: "127.0.0.1", port, path: "/v1/transactions/export", headers }, resolve).on("error", reject);
  });
  if (response.statusCode !== 200) throw new Error(`an export was answered ${String(response.statusCode)}`);
  let bytes = 0;
  let lines = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    bytes += piece.length;
    for (const byte of piece) if (byte === LINE_END) lines += 1;
  }
  return { bytes, lines };
}

async function rawRowsPerSecond(db: Db, organizationId: string): Promise<number> {
  const cursor = collectionsOf(db)
    .transactions.find(
      { organizationId, rail: { $in: ["card", "wallet"] } },
      { hint: newestFirst(["organizationId", "rail"]) },
    )
    .sort({ createdAt: -1, _id: -1 })
    .batchSize(1_000);
  const startedAt = performance.now();
  let rows = 0;
  for await (const _row of cursor) rows += 1;
  return rows / ((performance.now() - startedAt) / 1_000);
}

import { accessProofsOf, prove } from "../../test/support/access-proofs.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { join } from "node:path";
import { type Db, MongoClient } from "mongodb";
import { z } from "zod";
import { createOrganization } from "../../server/admin/create-organization.ts";
import { connectMongo } from "../../src/store/connections.ts";
import type { LoadMeasured } from "./cases.ts";
import { Child } from "./child.ts";
import { cpuUsed, readCpu } from "./cpu.ts";
import { type ExportResult, measureExport } from "./lists/export.ts";
import { type Seeded, seedTransactions } from "./lists/seed.ts";
import { type WritingResult, measureWriting } from "./lists/writing.ts";
import type { Load } from "./load/messages.ts";
import type { ServiceConfig } from "./processes/service.ts";
import { median, percentile } from "./statistics.ts";
import { callTo, postTo, signIn } from "./systems/payments-agents.ts";
import { MASTER_KEY, portOf, serviceEnvironment, type Site } from "./systems/system.ts";

/** Cost of lists of many payments, and of their export. */
export interface ListsResult {
  readonly rows: number;
  readonly agents: number;
  readonly seededSeconds: number;
  /** One record by its id, by the organization's key: what a request takes that reads as little as can be. */
  readonly oneMs: number;
  readonly lists: readonly ListFigures[];
  readonly file: ExportResult;
  readonly writing: WritingResult;
}

export interface ListFigures {
  readonly by: KeyName;
  readonly filter: string;
  readonly first: PageFigures;
  readonly deep: PageFigures;
}

export interface PageFigures {
  /** From 1. */
  readonly page: number;
  readonly requests: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of the service and MongoDB, for each request: what a busy machine does not change. Null where the system does not tell. */
  readonly processorMs: number | null;
  /** To the p50 of one record by its id, just before and after. */
  readonly toOne: number;
}

/** Key of the requests. */
export type KeyName = "organization" | "small team";

type Query = Readonly<Record<string, string>>;

const AGENTS_MAX = 1_000;
const ROWS_OF_AN_AGENT = 1_000;
const DEEP_PAGE = 1_000;
const PAGE_ROWS = 50;
/** To get to a page soon; a cursor is good whatever the page's size. */
const WALK_ROWS = 200;
const LOAD_GRACE_MS = 30_000;
const RUN_UP_SECONDS = 3;
/** A page and one record take turns, so that what slows one slows the other. */
const TURNS = 2;

export interface ListsOptions {
  readonly site: Site;
  readonly rows: number;
  /** Of each page of each list. */
  readonly seconds: number;
  readonly generator: Child;
  readonly onProgress: (line: string) => void;
  readonly undo: (step: () => Promise<unknown>) => void;
}

const transactions = z.object({
  transactions: z.array(z.object({ id: z.string() })),
  nextCursor: z.string().nullable(),
});
const minted = z.object({ key: z.string() });

/** Seeds, asks for each list's first page and a deep one, exports everything, and measures what indexes cost a write. */
export async function measureLists(options: ListsOptions): Promise<ListsResult> {
  const { generator, onProgress, rows, seconds, site, undo } = options;
  const env = serviceEnvironment(site, "bench_lists");
  const config: ServiceConfig = { env, logFile: join(site.dataDir, "logs", "lists.log") };
  const service = await Child.start({ entry: "processes/payments.ts", config, profileDir: site.profileDir });
  undo(() => service.stop());
  const port = portOf(service.port);
  const owner = { email: "owner@example.com", password: "correct horse battery staple" };
  const { organizationId } = await createOrganization(env, {
    name: "Bench",
    ownerEmail: owner.email,
    ownerPassword: owner.password,
    plan: "enterprise",
    restPerMinute: 1_000_000,
  });
  const { mongo, db } = await connectMongo(String(env["MONGODB_URI"]));
  undo(() => mongo.close());
  const seeding = await MongoClient.connect(String(env["MONGODB_URI"]));
  undo(() => seeding.close());
  const startedAt = performance.now();
  const agents = Math.min(AGENTS_MAX, Math.ceil(rows / ROWS_OF_AN_AGENT) + 20);
  const seeded = await seedTransactions({
    patient: seeding.db(db.databaseName),
    organizationId,
    rows,
    agents,
    onProgress: everyTenth(rows, onProgress),
  });
  const seededSeconds = (performance.now() - startedAt) / 1_000;
  const keys = await mintKeys(db, port, await signIn(port, owner), seeded);
  const one = transactions.parse(
    await callTo(port, "GET", "/v1/transactions?limit=1", undefined, keys.organization),
  );
  const pids = () => ({ service: service.pid, mongod: site.pids()["mongod"] ?? null });
  const onePath = `/v1/transactions/${one.transactions[0]?.id ?? ""}`;
  const asking = new PagedRequests({ generator, port, seconds, pids, onePath, oneToken: keys.organization });
  for (const path of [onePath, "/v1/transactions"])
    await asking.taken(keys.organization, path, RUN_UP_SECONDS);
  const lists: ListFigures[] = [];
  for (const by of ["organization", "small team"] as const) {
    for (const [filter, query] of filtersOf(seeded)) {
      const first = await asking.pages(keys[by], pathOf(query));
      const { cursor, page } = await deepest(port, keys[by], query);
      const deep = await asking.pages(keys[by], pathOf({ ...query, ...cursor }));
      lists.push({ by, filter, first: { ...first, page: 1 }, deep: { ...deep, page } });
      onProgress(
        `lists · ${by}, ${filter}: p50 ${first.p50Ms.toFixed(1)} ms, page ${String(page)} ${deep.p50Ms.toFixed(1)} ms`,
      );
    }
  }
  const file = await measureExport({ db, organizationId, port, service, token: keys.organization });
  onProgress(
    `lists · export: ${file.rowsPerSecond.toFixed(0)} rows/s, raw cursor ${file.rawRowsPerSecond.toFixed(0)}`,
  );
  const writing = await measureWriting(mongo, onProgress);
  return { rows, agents, seededSeconds, oneMs: asking.oneMs, lists, file, writing };
}

function everyTenth(rows: number, onProgress: (line: string) => void): (written: number) => void {
  let reported = 0;
  return (written) => {
    const tenths = Math.floor((10 * written) / rows);
    if (tenths > reported) onProgress(`lists · ${String(written)} of ${String(rows)} transactions are there`);
    reported = tenths;
  };
}

/** Every filter by itself, and combinations that dashboards and bindings come to. */
function filtersOf({ small: { agentId, projectId, teamId } }: Seeded): readonly (readonly [string, Query])[] {
  return [
    ["none", {}],
    ["agent", { agentId }],
    ["project", { projectId }],
    ["team", { teamId }],
    ["card", { type: "card" }],
    ["wallet", { type: "wallet" }],
    ...["approved", "pending", "denied", "failed", "reversed", "expired"].map(
      (status) => [status, { status }] as const,
    ),
    ...["7d", "30d", "90d"].map((range) => [range, { range }] as const),
    ["agent, wallet, denied", { agentId, type: "wallet", status: "denied" }],
    ["team, approved, 90d", { teamId, status: "approved", range: "90d" }],
    ["project, card", { projectId, type: "card" }],
    ["project, team, agent", { projectId, teamId, agentId }],
    ["project, denied, 30d", { projectId, status: "denied", range: "30d" }],
  ];
}

const pathOf = (query: Query): string => `/v1/transactions?${new URLSearchParams(query).toString()}`;

/** The cursor of the thousandth page, or of the last one where there are fewer. */
async function deepest(
  port: number,
  token: string,
  query: Query,
): Promise<{ readonly cursor: Query; readonly page: number }> {
  const before = PAGE_ROWS * (DEEP_PAGE - 1);
  let passed = 0;
  let cursor: Query = {};
  while (passed < before) {
    const limit = Math.min(WALK_ROWS, before - passed);
    const path = pathOf({ ...query, ...cursor, limit: String(limit) });
    const { nextCursor } = transactions.parse(await callTo(port, "GET", path, undefined, token));
    if (nextCursor === null) break;
    cursor = { cursor: nextCursor };
    passed += limit;
  }
  return { cursor, page: Math.floor(passed / PAGE_ROWS) + 1 };
}

interface PagedRequestsOptions {
  readonly generator: Child;
  readonly port: number;
  /** Of each page, in all turns. */
  readonly seconds: number;
  readonly pids: () => Readonly<Record<string, number | null>>;
  /** The read that a page is compared with, by the same key. */
  readonly onePath: string;
  readonly oneToken: string;
}

/** One request after another, from the load generator. */
class PagedRequests {
  readonly #options: PagedRequestsOptions;
  readonly #ones: number[] = [];

  constructor(options: PagedRequestsOptions) {
    this.#options = options;
  }

  /** One record by its id, over all turns so far. */
  get oneMs(): number {
    return median(this.#ones);
  }

  /** A page in turns with one record. */
  async pages(token: string, path: string): Promise<Omit<PageFigures, "page">> {
    const { onePath, oneToken, pids, seconds } = this.#options;
    const latenciesMs: number[] = [];
    const ones: number[] = [];
    let usedMs: number | null = 0;
    for (let turn = 0; turn < TURNS; turn += 1) {
      ones.push(...(await this.taken(oneToken, onePath, seconds / TURNS / 2)));
      const before = await readCpu(pids());
      latenciesMs.push(...(await this.taken(token, path, seconds / TURNS)));
      const { mongod = null, service = null } = cpuUsed(before, await readCpu(pids()));
      usedMs = usedMs === null || mongod === null || service === null ? null : usedMs + mongod + service;
    }
    const sorted = latenciesMs.toSorted((a, b) => a - b);
    const oneMs = median(ones);
    this.#ones.push(oneMs);
    const p50Ms = percentile(sorted, 0.5);
    return {
      requests: sorted.length,
      p50Ms,
      p99Ms: percentile(sorted, 0.99),
      processorMs: usedMs === null ? null : usedMs / sorted.length,
      toOne: p50Ms / oneMs,
    };
  }

  /** Returns the duration of each request in milliseconds. */
  async taken(token: string, path: string, seconds: number): Promise<readonly number[]> {
    const headers = { authorization: `Bearer ${token}` };
    const templates = [{ method: "GET" as const, path, headers, body: null }];
    const load: Load = { port: this.#options.port, connections: 1, seconds, templates };
    const taken = await this.#options.generator.request<LoadMeasured>(load, seconds * 1_000 + LOAD_GRACE_MS);
    if (taken.firstError !== null) throw new Error(`${path}: ${taken.firstError}`);
    return taken.latenciesMs;
  }
}

/** As the owner would, who has stepped up: by hand, since the bench has no code generator. */
async function mintKeys(
  db: Db,
  port: number,
  token: string,
  { small }: Seeded,
): Promise<Readonly<Record<KeyName, string>>> {
  const stepUpExpiresAt = new Date(Date.now() + 60_000);
  await prove(
    db,
    "session",
    {},
    { stepUpExpiresAt },
    accessProofsOf(MasterKey.parse(MASTER_KEY, "the bench")),
  );
  const mint = async (binding: object): Promise<string> => {
    const body = { name: "bench", scopes: ["agents:read"], binding };
    return minted.parse(await postTo(port, "/v1/organization-keys", body, token)).key;
  };
  return {
    organization: await mint({ type: "organization" }),
    "small team": await mint({ type: "team", id: small.teamId }),
  };
}

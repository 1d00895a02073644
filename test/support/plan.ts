import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { allEdges, changedFiles, nearestFirst } from "./changed.ts";
import { someOrAll } from "./soak.ts";

/** Which test files run, beside what, and in which order. */

/** Beginnings of paths below `test`. */
type Beginnings = readonly string[];

/** What needs no MongoDB, no Temporal and no chain: alone, it runs without waiting for them. */
const WITHOUT_ENGINES: Beginnings = [
  "actors/agent-mailbox",
  "actors/batch-linger",
  "actors/fair-queue",
  "actors/ledger-",
  "actors/overload",
  "architecture/",
  "chaos/timeout",
  "client/amounts",
  "client/retries",
  "client/routes",
  "contract/",
  "deploy/",
  "domain/",
  "engines/",
  "http/base-url",
  "limits/retry-turns",
  "mail/settings",
  "mail/smtp",
  "mail/text",
  "payments/sweep-shares",
  "replay/",
  "temporal/payload-codec",
  "webhooks/pace",
  "webhooks/settings",
  "webhooks/signature",
  "webhooks/slots",
  "webhooks/verify-snippets",
  "webhooks/hostile-urls",
  "webhooks/rebinding",
  "webhooks/receiver-tricks",
  "x402/rebinding",
];

/** What starts and kills processes of the service runs one file after another, so that it does not meet itself. */
const ONE_AT_A_TIME: Beginnings = ["chaos/", "restart/", "build/"];

/** What is promised to be answered within a time runs when everything else has ended. */
const QUIET: Beginnings = [
  "agents/machine-archive-chain",
  "containers/unfinished-budgets",
  "outage/",
  "restart/roles",
];

/**
 * Random disasters, searches among a million records, stops of thousands of agents, and tests of what tests: these run where they are named, and in
 * `npm run soak`. What they would find in a change, cheaper tests find first.
 */
const SOAK: Beginnings = [
  "architecture/changed",
  "chaos/caps",
  "chaos/chaos",
  "containers/large-team",
  "containers/many-stops",
  "contracts/wallet-mutants",
  "domain/simulation-faults",
  "http/reference-page",
  "lists/million",
  "restart/audit-log",
  "restart/backup",
  "restart/engines",
  "restart/lost-nothing",
  "restart/stopped-server",
  "restart/two-versions",
];

/**
 * The costliest tests, by kind: pages in a browser, timers of workflows, processes of the service that are started and killed, chains
 * that hang, ledgers and backups that are restored and compared, engines and packages. Of each kind a whole run plays one file,
 * picked by its seed; the soak, and a run of what a change can break, all of them.
 */
const COSTLY: readonly Beginnings[] = [
  [
    "approvals/approval-page",
    "dashboard/administration",
    "dashboard/beside",
    "dashboard/company-network",
    "dashboard/connect",
    "dashboard/entrance",
    "dashboard/many",
    "dashboard/policies",
    "dashboard/rails",
    "identity/passkeys-browser",
  ],
  [
    "workflows/agent-archive",
    "workflows/agent-window",
    "workflows/approval-mails",
    "workflows/ledger-cold",
    "workflows/ledger-paused",
    "workflows/ledger-sweep",
    "workflows/settlement",
  ],
  [
    "restart/early-signals",
    "restart/key-secrecy",
    "restart/killed",
    "restart/roles",
    "restart/roll-over",
    "restart/start-up-errors",
    "secrets/rotation",
  ],
  [
    "agents/machine-archive-chain",
    "chain/foreign-nonces",
    "chain/providers",
    "wallets/wallet-silent-chain",
    "wallets/wallet-slow-chain",
  ],
  ["payments/backups", "payments/reconcile.test", "payments/released-first", "payments/restore-ledger"],
  ["build/package", "engines/anvil", "engines/reach", "engines/start", "exports/many-transactions"],
];
const COSTLY_PLAYED = 1;

/** Tests that make a server as busy as it can be, and measure that it answers soon all the same: each has the machine to itself. */
const ALONE: Beginnings = ["http/busy"];

/** What takes longest begins first, so that nothing is left to wait for alone at the end. */
const LONG: Beginnings = [
  "restart/",
  "chaos/",
  "wallets/",
  "containers/caps",
  "payments/re",
  "approvals/",
  "dashboard/",
  "workflows/",
  "contracts/",
  "x402/",
  "webhooks/deliveries",
  "agents/machine-archive",
];

export interface Selection {
  readonly files: readonly string[];
  /** A pattern that titles must fit; null: all tests of the files. */
  readonly grep: string | null;
  /** Time after which no further file begins, of files that come in the order of their importance; null: all run. */
  readonly beginWithinMs: number | null;
}

/** The first word of a run of what a change can break; a revision may follow. */
const CHANGED = "--changed";
/** With the build before it and the last files after it such a run takes less than 2 minutes. */
const CHANGED_BEGIN_WITHIN_MS = 60_000;

const notPicked = (files: Beginnings): Beginnings => {
  const played = someOrAll(files, COSTLY_PLAYED);
  return files.filter((each) => !played.includes(each));
};

const fits = (file: string, beginnings: Beginnings): boolean =>
  beginnings.some((beginning) => file.startsWith(`test/${beginning}`));

export const needsEngines = (file: string): boolean => !fits(file, WITHOUT_ENGINES);

/** Whether a file waits for the run's engines, or for their programs, which it starts itself. */
export const waitsForEngines = (file: string): boolean => needsEngines(file) || fits(file, ["engines/"]);

/** Whether it starts time-skipping servers. */
export const needsTestServer = (file: string): boolean =>
  fits(file, ["webhooks/delivery-workflow", "workflows/"]);

export async function allFiles(): Promise<readonly string[]> {
  const found = await readdir("test", { recursive: true });
  return found
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => join("test", file))
    .toSorted();
}

/**
 * What the arguments name: files whose path holds one of them; where no path does, the tests whose titles, with those of
 * the suites around them, hold all of them as words. After `--changed`, the files that reach what has changed.
 */
export async function selected(words: readonly string[]): Promise<Selection> {
  const files = await allFiles();
  const all = { grep: null, beginWithinMs: null };
  if (words.length === 0) {
    const leftOut = [...SOAK, ...COSTLY.flatMap(notPicked)];
    return { ...all, files: files.filter((file) => !fits(file, leftOut)) };
  }
  if (words[0] === CHANGED) {
    const changed = await changedFiles(words[1]);
    // These take half a minute or more each, and start the service's processes, which everything is part of.
    const short = files.filter((file) => !fits(file, [...SOAK, ...ONE_AT_A_TIME]) || changed.includes(file));
    const nearest = nearestFirst(short, changed, await allEdges(changed));
    return { ...all, files: nearest, beginWithinMs: CHANGED_BEGIN_WITHIN_MS };
  }
  const named = files.filter((file) => words.some((word) => file.includes(word.replace(/^\.\//, ""))));
  if (named.length > 0) return { ...all, files: named };
  const texts = await Promise.all(files.map(async (file) => (await textOf(file)).toLowerCase()));
  const holding = files.filter((_file, index) =>
    words.every((word) => texts[index]?.includes(word.toLowerCase()) === true),
  );
  const escaped = words.map((word) => `(?=.*${word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")})`);
  return { ...all, files: holding, grep: `^${escaped.join("")}` };
}

/** With the scenes that a file is made of, which lie in the folder of its name. */
async function textOf(file: string): Promise<string> {
  const folder = file.replace(/\.test\.ts$/, "");
  const scenes = await readdir(folder).catch(() => []);
  const parts = [file, ...scenes.filter((name) => name.endsWith(".ts")).map((name) => join(folder, name))];
  return (await Promise.all(parts.map((part) => readFile(part, "utf8")))).join("\n");
}

const rankOfLong = (file: string): number =>
  LONG.findIndex((beginning) => file.startsWith(`test/${beginning}`));

/** Files that run side by side, in as many processes at most. */
interface Phase {
  readonly lanes: number;
  readonly waiting: string[];
}

/** The service that a lane's files share, in the text of those that do. */
const SHARED_SERVICE = /\b(sharedService|newWorld)\(\)/;

/** The files that use their lane's shared service. */
export async function sharingFiles(files: readonly string[]): Promise<ReadonlySet<string>> {
  const texts = await Promise.all(files.map((file) => readFile(file, "utf8")));
  return new Set(files.filter((_file, index) => SHARED_SERVICE.test(texts[index] ?? "")));
}

export interface PlanOptions {
  readonly files: readonly string[];
  readonly lanes: number;
  /** With an end, in the order given: what has not begun by then, in `performance.now()`, is left out. */
  readonly beginUntil: number | null;
  /** See `sharingFiles`. */
  readonly sharing: ReadonlySet<string>;
}

/** Hands out files in an order that keeps those apart which must not meet. */
export class Plan {
  readonly #phases: Phase[];
  readonly #running = new Set<string>();
  readonly #beginUntil: number;
  readonly #sharing: ReadonlySet<string>;

  constructor({ beginUntil, files, lanes, sharing }: PlanOptions) {
    this.#beginUntil = beginUntil ?? Infinity;
    this.#sharing = sharing;
    this.#phases = phasesOf(beginUntil === null ? longestFirst(files) : files, lanes);
  }

  /**
   * The next file that may run now, of those whose engines are up; null: none may, or none is left. Half of the lanes
   * take sharing files first. The others start no shared service while there is something else: an idle one takes 4 %
   * of a core, its engines' share included.
   */
  take(isReady: (file: string) => boolean, sharesFirst: boolean): string | null {
    if (performance.now() > this.#beginUntil) this.#phases.length = 0;
    const waiting = this.#phase?.waiting ?? [];
    const busy = [...this.#running].some((file) => fits(file, ONE_AT_A_TIME));
    const mayRun = (file: string): boolean => isReady(file) && !(busy && fits(file, ONE_AT_A_TIME));
    const preferred = waiting.findIndex((file) => this.#sharing.has(file) === sharesFirst && mayRun(file));
    const index = preferred === -1 ? waiting.findIndex(mayRun) : preferred;
    const [file = null] = index === -1 ? [] : waiting.splice(index, 1);
    if (file !== null) this.#running.add(file);
    return file;
  }

  done(file: string): void {
    this.#running.delete(file);
  }

  /** Maximum number of files that may run now. */
  get lanes(): number {
    return this.#phase?.lanes ?? 0;
  }

  get left(): number {
    return this.#phases.reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  /** The phase at hand, which ends with its last file. */
  get #phase(): Phase | undefined {
    while (this.#running.size === 0 && this.#phases[0]?.waiting.length === 0) this.#phases.shift();
    return this.#phases[0];
  }
}

const longestFirst = (files: readonly string[]): readonly string[] => [
  ...files.filter((file) => fits(file, LONG)).toSorted((a, b) => rankOfLong(a) - rankOfLong(b)),
  ...files.filter((file) => !fits(file, LONG)),
];

/** The phases of a run: those that run beside others, the quiet ones, and those that run alone. */
function phasesOf(files: readonly string[], lanes: number): Phase[] {
  return [
    { lanes, waiting: files.filter((file) => !fits(file, [...QUIET, ...ALONE])) },
    { lanes: Math.min(2, lanes), waiting: files.filter((file) => fits(file, QUIET)) },
    { lanes: 1, waiting: files.filter((file) => fits(file, ALONE)) },
  ];
}

import type { Collection } from "mongodb";
import { Gauge } from "prom-client";
import { withTimeout } from "../lib/with-timeout.ts";
import { RAILS } from "../domain/ledger/payment.ts";
import type { Collections } from "../store/collections.ts";
import { type Metrics, PREFIX } from "./metrics.ts";

/** Timeout of a scrape's reads from MongoDB. Late values are left out. */
const READ_TIMEOUT_MS = 1_000;
/** TTL of the cache, so that frequent scrapes cost MongoDB nothing. */
const CACHE_TTL_MS = 1_000;

export interface OpenWorkDependencies {
  readonly collections: Pick<Collections, "approvals" | "events" | "transactions">;
  readonly metrics: Metrics;
  readonly clock: () => Date;
}

/**
 * Registers gauges of open work over all organizations, read from the records at each scrape: every server shows the
 * same. If MongoDB does not answer, only these gauges are missing.
 */
export function registerOpenWork({ clock, collections, metrics }: OpenWorkDependencies): void {
  let reading: Promise<OpenWork | null> = Promise.resolve(null);
  let readAt = -Infinity;
  const read = (): Promise<OpenWork | null> => {
    if (performance.now() - readAt < CACHE_TTL_MS) return reading;
    readAt = performance.now();
    reading = withTimeout(READ_TIMEOUT_MS, readOpen(collections)).catch(() => null);
    return reading;
  };
  const open = new Gauge({
    name: `${PREFIX}open_payments`,
    help: "Payments without an end: held for a person, or in flight",
    labelNames: ["rail", "state"],
    registers: [],
    async collect() {
      const found = await read();
      this.reset();
      if (found === null) return;
      for (const rail of RAILS) {
        const held = found.held[rail] ?? 0;
        this.set({ rail, state: "held" }, held);
        // The two are read one after the other, so a payment may have moved between them.
        this.set({ rail, state: "in_flight" }, Math.max(0, (found.pending[rail] ?? 0) - held));
      }
    },
  });
  const age = (name: string, help: string, sinceOf: (found: OpenWork) => Date | null) =>
    new Gauge({
      name: `${PREFIX}${name}`,
      help,
      registers: [],
      async collect() {
        const found = await read();
        if (found === null) return this.remove();
        const since = sinceOf(found)?.getTime() ?? clock().getTime();
        this.set(Math.max(0, (clock().getTime() - since) / 1_000));
      },
    });
  const gauges = [
    open,
    age(
      "oldest_approval_age_seconds",
      "For how long the oldest payment on hold has waited for a person; 0: none waits",
      ({ heldSince }) => heldSince,
    ),
    age(
      "oldest_pending_event_age_seconds",
      "How long ago the oldest event happened whose webhook deliveries are still to be begun; 0: there is none",
      ({ eventSince }) => eventSince,
    ),
  ];
  for (const gauge of gauges) metrics.registry.registerMetric(gauge);
}

interface OpenWork {
  readonly pending: Readonly<Record<string, number>>;
  readonly held: Readonly<Record<string, number>>;
  readonly heldSince: Date | null;
  readonly eventSince: Date | null;
}

async function readOpen({
  approvals,
  events,
  transactions,
}: OpenWorkDependencies["collections"]): Promise<OpenWork> {
  const [pending, held, oldest, [event]] = await Promise.all([
    countedByRail(transactions, { status: "pending" }),
    countedByRail(approvals, { state: "pending" }),
    approvals.findOne(
      { state: "pending" },
      { sort: { createdAt: 1 }, projection: { _id: 0, createdAt: 1 }, maxTimeMS: READ_TIMEOUT_MS },
    ),
    events.aggregate<{ since: Date }>(OLDEST_PENDING_EVENT, { maxTimeMS: READ_TIMEOUT_MS }).toArray(),
  ]);
  return { pending, held, heldSince: oldest?.createdAt ?? null, eventSince: event?.since ?? null };
}

/** Answered by an index alone, which begins with the organization. */
export const OLDEST_PENDING_EVENT = [
  { $match: { isPending: true } },
  { $group: { _id: null, since: { $min: "$createdAt" } } },
];

/** Answered by an index alone. */
export const countsByRail = (filter: Readonly<Record<string, string>>) => [
  { $match: filter },
  { $group: { _id: "$rail", count: { $sum: 1 } } },
];

type Counted = Pick<Collection, "aggregate">;

async function countedByRail(
  collection: Counted,
  filter: Readonly<Record<string, string>>,
): Promise<Record<string, number>> {
  const byRail = collection.aggregate<{ _id: string; count: number }>(countsByRail(filter), {
    maxTimeMS: READ_TIMEOUT_MS,
  });
  return Object.fromEntries((await byRail.toArray()).map(({ _id, count }) => [_id, count]));
}

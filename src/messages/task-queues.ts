import { RAILS } from "../domain/ledger/payment.ts";

/**
 * What activities wait for that may be slow or down. Side queues: each has a task queue besides the service's own, and slots of
 * its own in every worker, so that none of them delays records, expiries or another one: calls to either rail, polls of payments
 * that a rail has, and receivers of webhooks.
 */
export const WAITED_FOR = [...RAILS, "settlements", "webhooks"] as const;
export type WaitedFor = (typeof WAITED_FOR)[number];

export const sideTaskQueue = (taskQueue: string, waitedFor: WaitedFor): string => `${taskQueue}-${waitedFor}`;

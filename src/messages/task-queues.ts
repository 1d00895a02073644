import { RAILS } from "../domain/ledger/payment.ts";

/**
 * What activities wait for that may be slow or down. Side queues: each has a task queue besides the service's own, and slots of
 * its own in every worker, so that none of them delays records, expiries or another one: calls to either rail, polls of payments
 * that a rail has, and receivers of webhooks.
 */
export const SIDE_QUEUES = [...RAILS, "settlements", "webhooks"] as const;
export type SideQueue = (typeof SIDE_QUEUES)[number];

export const sideTaskQueue = (taskQueue: string, waitedFor: SideQueue): string => `${taskQueue}-${waitedFor}`;

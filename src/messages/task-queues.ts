import { RAILS } from "../domain/ledger/payment.ts";

/**
 * Separate task queues for activities that wait for something slow: calls to either rail, polls of payments, and
 * receivers of webhooks. Each has its own slots in every worker, so that none delays records, expiries or another
 * queue.
 */
export const SIDE_QUEUES = [...RAILS, "settlements", "webhooks"] as const;
export type SideQueue = (typeof SIDE_QUEUES)[number];

export const sideTaskQueue = (taskQueue: string, waitedFor: SideQueue): string => `${taskQueue}-${waitedFor}`;

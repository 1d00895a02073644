import { RAILS } from "../domain/ledger/payment.ts";

/**
 * Side task queues for activities that wait for something slow. Each has slots of its own in every worker, so that
 * none delays records, expiries or another queue: calls to either rail, polls of payments, and receivers of webhooks.
 */
export const SIDE_QUEUES = [...RAILS, "settlements", "webhooks"] as const;
export type SideQueue = (typeof SIDE_QUEUES)[number];

export const sideTaskQueue = (taskQueue: string, waitedFor: SideQueue): string => `${taskQueue}-${waitedFor}`;

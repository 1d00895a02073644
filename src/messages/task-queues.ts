import { RAILS } from "../domain/ledger/payment.ts";

/**
 * What activities wait for that may be slow or down. Each has a task queue beside the service's own, and places of its own in every worker,
 * so that none of them keeps records, expiries or another one waiting: calls to either rail, questions what has become of payments that a
 * rail has, and receivers of webhooks.
 */
export const WAITED_FOR = [...RAILS, "settlements", "webhooks"] as const;
export type WaitedFor = (typeof WAITED_FOR)[number];

export const sideTaskQueue = (taskQueue: string, waitedFor: WaitedFor): string => `${taskQueue}-${waitedFor}`;

/** Names of the workflows that keep a worker on a watch. One per task queue and kind of watch. */

export const WATCH_WORKFLOW = "watch";
export const WATCHES = ["events", "deposits", "networks"] as const;
export type Watch = (typeof WATCHES)[number];
export const watchWorkflowId = (taskQueue: string, watch: Watch): string => `watch/${taskQueue}/${watch}`;

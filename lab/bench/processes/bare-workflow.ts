import { condition, defineUpdate, proxyActivities, setHandler } from "@temporalio/workflow";
import type { BareActivities } from "./bare.ts";

export const touch = defineUpdate("touch");

/** The least an actor can be: it answers an update with nothing, for as long as the bench runs. */
export async function bare(): Promise<void> {
  setHandler(touch, () => undefined);
  await condition(() => false);
}

const { run } = proxyActivities<BareActivities>({ startToCloseTimeout: "40 seconds" });

/** The least a delivery can be: a workflow that has one activity run, and ends. */
export const bareDelivery = (id: string): Promise<void> => run(id);

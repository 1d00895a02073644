import { condition, defineUpdate, setHandler } from "@temporalio/workflow";

export const touch = defineUpdate("touch");

/** The least an actor can be: it answers an update with nothing, for as long as the bench runs. */
export async function bare(): Promise<void> {
  setHandler(touch, () => undefined);
  await condition(() => false);
}

import { randomUUID } from "node:crypto";
import type { TestAgent, World } from "./world.ts";

/** A request for more than any agent of a test may spend. */
export const raiseOrder = (change: object = {}) => ({
  amountCents: 5_000_000,
  reason: "A larger order than usual",
  idempotencyKey: randomUUID(),
  ...change,
});

/** Asks for a raise; returns the request's id. */
export async function askRaise(
  { api }: Pick<World, "api">,
  agent: Pick<TestAgent, "key">,
  change: object = {},
): Promise<string> {
  const asked = await api.ok("requestRaise", 201, { token: agent.key, body: raiseOrder(change) });
  return asked.raiseRequest.id;
}

import { elevate, newWorld, times, type World } from "../support/world.ts";
import { startTestService } from "../support/service.ts";

/** An organization with some history on a service of its own. */
export async function withHistory(auditAnchorSeconds?: number): Promise<World> {
  const service = await startTestService(auditAnchorSeconds === undefined ? {} : { auditAnchorSeconds });
  const world = await newWorld(service);
  const { id } = await world.agent();
  await elevate(world);
  for (const version of times(4, (index) => index + 1)) {
    const body = { version, budgetCents: version * 100 };
    await world.api.ok("updateAgentBudgetPolicy", 200, { token: world.token, id, body });
  }
  return world;
}

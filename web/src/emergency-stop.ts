import type { Refused } from "../../src/client/types.ts";
import { patientApi } from "./api.ts";
import type { Agent } from "./words.ts";

/** So many are stopped at the same time. */
const AT_ONCE = 6;

export type Stopped =
  | { readonly ok: true; readonly stopped: number }
  | { readonly ok: false; readonly refused: Refused; readonly stopped: number };

type Stoppable = Pick<Agent, "id" | "key" | "state">;

/** What is stopped: one agent, or all that a team or a project holds. */
export type Scope =
  { readonly agent: Stoppable } | { readonly teamId: string } | { readonly projectId: string };

async function agentsOf(scope: Scope): Promise<readonly Stoppable[]> {
  if ("agent" in scope) return [scope.agent];
  const found: Stoppable[] = [];
  for await (const agent of patientApi.each("listAgents", { query: { ...scope, limit: 200 } })) {
    if (agent.state !== "archived") found.push(agent);
  }
  return found;
}

/** Runs it for all of them, some at a time; stops at the first refusal. */
async function forAll<T>(
  all: readonly T[],
  run: (one: T) => Promise<Refused | null>,
): Promise<Refused | null> {
  const waiting = [...all];
  let refused: Refused | null = null;
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined && refused === null; next = waiting.shift()) {
      refused = (await run(next)) ?? refused;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return refused;
}

/**
 * Pauses all of them first, which needs no second factor, so that nothing is paid while somebody looks for theirs; then revokes their
 * keys. `stepUp` is asked when the first key is.
 */
export async function emergencyStop(scope: Scope, stepUp: () => Promise<boolean>): Promise<Stopped> {
  const agents = await agentsOf(scope);
  const paused = await forAll(
    agents.filter(({ state }) => state === "active"),
    async ({ id }) => refusedOf(await patientApi.pauseAgent({ id }), ["AGENT_ARCHIVED"]),
  );
  if (paused !== null) return { ok: false, refused: paused, stopped: 0 };
  const withKeys = agents.filter(({ key }) => key?.status === "active");
  const revoke = () =>
    forAll(withKeys, async ({ id }) =>
      // Another person may have revoked it meanwhile.
      refusedOf(await patientApi.revokeAgentKey({ id }), ["NOT_FOUND", "AGENT_ARCHIVED"]),
    );
  const refused = await revoke();
  if (refused?.code !== "STEP_UP_REQUIRED") return ended(refused, agents.length);
  if (!(await stepUp())) return ended(refused, agents.length);
  return ended(await revoke(), agents.length);
}

const ended = (refused: Refused | null, stopped: number): Stopped =>
  refused === null ? { ok: true, stopped } : { ok: false, refused, stopped };

function refusedOf(
  answer: { readonly ok: true } | { readonly ok: false; readonly refused: Refused },
  fine: readonly Refused["code"][],
): Refused | null {
  return answer.ok || fine.includes(answer.refused.code) ? null : answer.refused;
}

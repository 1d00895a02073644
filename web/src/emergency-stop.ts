import { isAmbiguous, pause } from "../../src/client/retries.ts";
import type { Answer, Refused } from "../../src/client/types.ts";
import { patientApi } from "./api.ts";
import type { Agent } from "./words.ts";

export type Stopped =
  | { readonly ok: true }
  /** `isPaused`: nothing more is paid, though keys may remain. */
  | { readonly ok: false; readonly isPaused: boolean; readonly refused: Refused };

export type Scope =
  | { readonly agent: Pick<Agent, "id"> }
  | { readonly teamId: string }
  | { readonly projectId: string }
  | "organization";

export type Step = "pausing" | "revoking";

interface Call {
  readonly send: () => Promise<Answer<unknown>>;
  /** Refusals that mean the goal is already reached or can no longer be changed. */
  readonly fine?: readonly Refused["code"][];
}

/** Maximum calls in a row without a response, after which the stop gives up. */
const UNANSWERED_MAX = 20;
const RETRY_DELAY_MS = 500;

function callsOf(scope: Scope): Readonly<Record<Step, Call>> {
  if (scope !== "organization" && "agent" in scope) {
    const { id } = scope.agent;
    return {
      pausing: { send: () => patientApi.pauseAgent({ id }), fine: ["AGENT_ARCHIVED"] },
      // Another person may have revoked the key in the meantime.
      revoking: { send: () => patientApi.revokeAgentKey({ id }), fine: ["NOT_FOUND", "AGENT_ARCHIVED"] },
    };
  }
  const stop = (revokeKeys: boolean): Promise<Answer<unknown>> => {
    const body = { revokeKeys };
    if (scope === "organization") return patientApi.stopOrganization({ body });
    return "teamId" in scope
      ? patientApi.stopTeam({ id: scope.teamId, body })
      : patientApi.stopProject({ id: scope.projectId, body });
  };
  return { pausing: { send: () => stop(false) }, revoking: { send: () => stop(true) } };
}

/**
 * Repeats a call until a response says whether it was done; repeating it changes nothing. Returns null once it is done.
 */
async function untilDone({ fine = [], send }: Call): Promise<Refused | null> {
  for (let tries = 1; ; tries += 1) {
    const answer = await send();
    if (answer.ok || fine.includes(answer.refused.code)) return null;
    if (!isAmbiguous(answer.refused) || tries >= UNANSWERED_MAX) return answer.refused;
    await pause(RETRY_DELAY_MS);
  }
}

/**
 * Pauses the scope first, which needs no second factor, so that nothing is paid while the user looks for theirs. Then
 * revokes the keys. `stepUp` is called with the first key.
 */
export async function emergencyStop(
  scope: Scope,
  stepUp: () => Promise<boolean>,
  onStep: (step: Step) => void,
): Promise<Stopped> {
  const calls = callsOf(scope);
  const run = (step: Step): Promise<Refused | null> => {
    onStep(step);
    return untilDone(calls[step]);
  };
  const unpaused = await run("pausing");
  if (unpaused !== null) return { ok: false, isPaused: false, refused: unpaused };
  let refused = await run("revoking");
  if (refused?.code === "STEP_UP_REQUIRED" && (await stepUp())) refused = await run("revoking");
  return refused === null ? { ok: true } : { ok: false, isPaused: true, refused };
}

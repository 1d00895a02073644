import { isAmbiguous, pause } from "../../src/client/retries.ts";
import type { Answer, Refused } from "../../src/client/types.ts";
import { patientApi } from "./api.ts";
import type { Agent } from "./words.ts";

export type Stopped =
  | { readonly ok: true }
  /** `isPaused`: nothing more is paid, though keys may be left. */
  | { readonly ok: false; readonly isPaused: boolean; readonly refused: Refused };

/** What is stopped: one agent, or all that a team or a project holds. */
export type Scope =
  { readonly agent: Pick<Agent, "id"> } | { readonly teamId: string } | { readonly projectId: string };

/** How far it is; `left` is null while that is not known. */
export interface Progress {
  readonly step: "pausing" | "revoking";
  readonly left: number | null;
}

type Halves = Readonly<Record<Progress["step"], () => Promise<Answer<{ readonly remaining: number }>>>>;

/** Calls in a row that have changed nothing, after which it is given up for now. */
const FRUITLESS_MAX = 20;
const AGAIN_MS = 500;

const DONE = { ok: true, status: 200, value: { remaining: 0 }, now: null } as const;

/** What is so already, or can't be otherwise any more, is as good as done. */
async function doneBy(
  call: Promise<Answer<unknown>>,
  fine: readonly Refused["code"][],
): Promise<Answer<{ readonly remaining: number }>> {
  const answer = await call;
  return answer.ok || fine.includes(answer.refused.code) ? DONE : answer;
}

function halvesOf(scope: Scope): Halves {
  if ("agent" in scope) {
    const { id } = scope.agent;
    return {
      pausing: () => doneBy(patientApi.pauseAgent({ id }), ["AGENT_ARCHIVED"]),
      // Another person may have revoked it meanwhile.
      revoking: () => doneBy(patientApi.revokeAgentKey({ id }), ["NOT_FOUND", "AGENT_ARCHIVED"]),
    };
  }
  if ("teamId" in scope) {
    const { teamId: id } = scope;
    return {
      pausing: () => patientApi.pauseTeamAgents({ id }),
      revoking: () => patientApi.revokeTeamAgentKeys({ id }),
    };
  }
  const { projectId: id } = scope;
  return {
    pausing: () => patientApi.pauseProjectAgents({ id }),
    revoking: () => patientApi.revokeProjectAgentKeys({ id }),
  };
}

/** Repeats one half until nothing is left of it. What was lost on the way is asked for again: doing it twice changes nothing. */
async function untilNoneIsLeft(
  call: Halves[Progress["step"]],
  onLeft: (left: number) => void,
): Promise<Refused | null> {
  let fewest = Infinity;
  for (let fruitless = 0; ;) {
    const answer = await call();
    if (answer.ok && answer.value.remaining === 0) return null;
    if (answer.ok) onLeft(answer.value.remaining);
    if (answer.ok && answer.value.remaining < fewest) {
      fewest = answer.value.remaining;
      fruitless = 0;
      continue;
    }
    if (!answer.ok && !isAmbiguous(answer.refused)) return answer.refused;
    fruitless += 1;
    if (fruitless === FRUITLESS_MAX) return answer.ok ? STUCK : answer.refused;
    await pause(AGAIN_MS);
  }
}

const STUCK: Refused = {
  code: "SERVICE_UNAVAILABLE",
  status: 503,
  message: "The service does not get on with it.",
  issues: [],
  retryAfterSeconds: null,
  organizations: [],
  missing: [],
  unknown: [],
  requestId: null,
};

/**
 * Pauses all of them first, which needs no second factor, so that nothing is paid while a user looks for theirs; then revokes their
 * keys. `stepUp` is asked when the first key is.
 */
export async function emergencyStop(
  scope: Scope,
  stepUp: () => Promise<boolean>,
  onProgress: (progress: Progress) => void,
): Promise<Stopped> {
  const halves = halvesOf(scope);
  const run = (step: Progress["step"]): Promise<Refused | null> => {
    onProgress({ step, left: null });
    return untilNoneIsLeft(halves[step], (left) => onProgress({ step, left }));
  };
  const unpaused = await run("pausing");
  if (unpaused !== null) return { ok: false, isPaused: false, refused: unpaused };
  let refused = await run("revoking");
  if (refused?.code === "STEP_UP_REQUIRED" && (await stepUp())) refused = await run("revoking");
  return refused === null ? { ok: true } : { ok: false, isPaused: true, refused };
}

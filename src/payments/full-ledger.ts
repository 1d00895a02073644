import { refusal, type Refusal } from "../domain/errors.ts";
import type { ProjectFull, TooManyOpen } from "../domain/ledger/capacity.ts";

/** Refusals for a full ledger. Each names the bound that was reached and what frees it. */

const FREED_BY_ENDS =
  "Room is freed when payments end: those in flight by themselves, those on hold when a person decides, the agent cancels or their approval expires.";

const TOO_MANY: Readonly<Record<`${TooManyOpen["of"]} ${TooManyOpen["bound"]}`, string>> = {
  "agent payments": `This agent has its share of the payments that its project may have in flight or on hold; the share shrinks as the project's bound fills. ${FREED_BY_ENDS}`,
  "agent bytes": `This agent's payments in flight or on hold take its share of its project's ledger; long texts take most, and the share shrinks as the ledger fills. ${FREED_BY_ENDS}`,
  "project payments": `The agent's project has the maximum number of payments in flight or on hold. ${FREED_BY_ENDS}`,
  "project bytes": `The payments in flight or on hold in the agent's project, and its agents, take all the room of its ledger. ${FREED_BY_ENDS}`,
};

const NOTHING_OPEN =
  "The agents of this project take all the room of its ledger, and no payment is in flight or on hold. Archive agents, or use another project; waiting does not help.";

/** Returns the refusal, with the seconds until the first payment ends by itself, if any does. */
export function tooManyOpen({ bound, freesAt, of }: TooManyOpen, now: number): Refusal {
  if (freesAt === null) return refusal("RATE_LIMITED", NOTHING_OPEN);
  const retryAfterSeconds = Math.max(1, Math.ceil((freesAt - now) / 1_000));
  return refusal("RATE_LIMITED", TOO_MANY[`${of} ${bound}`], { retryAfterSeconds });
}

const PROJECT_FULL: Readonly<Record<ProjectFull["bound"], string>> = {
  accounts: "The project has the maximum number of active agents; archive agents, or use another project.",
  bytes:
    "The agents of this project, and their payments in flight or on hold, take all the room that its ledger has for new agents; let payments end, archive agents, or use another project.",
};

export const projectFull = ({ bound }: ProjectFull): Refusal => refusal("PROJECT_FULL", PROJECT_FULL[bound]);

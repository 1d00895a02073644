import { z } from "zod";
import { manages } from "./access.ts";
import { define } from "./define.ts";
import { uuid } from "./primitives.ts";
import type { PersonRequirements } from "./types.ts";

/** Maximum agents stopped by one request, so that the answer comes in time and the audit entry names each agent. */
export const STOPPED_AT_ONCE = 500;

const params = z.strictObject({ id: uuid });

const remaining = z
  .int()
  .min(0)
  .meta({ description: "How many agents are left: repeat the call until it is 0." });

const REPEATS = `A call handles as many agents as its time allows, at most ${STOPPED_AT_ONCE}: repeat it until \`remaining\` is 0. Repeating it is safe.`;

const revokesKeys = z.object({ revokeKeys: z.literal(true) });

/** Only people may revoke keys, with a step-up. */
const requirementsOf = (body: unknown): PersonRequirements | null =>
  revokesKeys.safeParse(body).success ? { role: "admin", stepUp: true } : null;

export const whoStops = { requirementsOf } as const;

/** Fields shared by the stops of a team, a project and the organization. */
export const stop = {
  rate: "standard",
  body: z.strictObject({
    revokeKeys: z
      .boolean()
      .optional()
      .meta({ description: "Whether every key of an agent in it is revoked, too." }),
  }),
  output: z.strictObject({
    paused: z.int().min(0).meta({ description: "Agents that this call has paused." }),
    revoked: z.int().min(0).meta({ description: "Keys that this call has revoked." }),
  }),
} as const;

export const STOPS =
  "Once it is answered, no payment of these agents is decided or sent. Records, events and, with `revokeKeys`, the refusal of other " +
  "requests with a key follow within seconds. Payments that await a decision stay on hold. An agent that is created while the call " +
  "is under way may not be stopped. Without `revokeKeys` it needs no step-up; with it, a person who is an admin or owner, and a " +
  "step-up. Repeating it is safe; what is stopped already is not counted again.";

/** Emergency stop of all agents in a team or a project, and its two halves, which handle some agents at a time. */
export const stopsOf = <K extends "team" | "project">(kind: K) =>
  ({
    stop: define({
      ...stop,
      summary: `Stop all agents of a ${kind}`,
      description: `The emergency stop: pauses every agent in the ${kind} in one decision. ${STOPS}`,
      tag: kind === "team" ? "Teams" : "Projects",
      access: { ...manages("agents:write", kind), ...whoStops },
      http: { method: "post", path: `/v1/${kind}s/:id/stop`, successStatus: 200 },
      params,
      errors: ["NOT_FOUND", "CONTAINER_ARCHIVED"],
    }),
    pauseAgents: define({
      summary: `Pause all agents of a ${kind}`,
      description:
        `Pauses every active agent in the ${kind}. It is the first half of an emergency stop, and ` +
        `needs no step-up. ${REPEATS}`,
      tag: kind === "team" ? "Teams" : "Projects",
      access: manages("agents:write", kind),
      rate: "standard",
      http: { method: "post", path: `/v1/${kind}s/:id/pause-agents`, successStatus: 200 },
      params,
      output: z.strictObject({
        paused: z.int().min(0).meta({ description: "Agents that this call has paused." }),
        remaining,
      }),
      errors: ["NOT_FOUND", "CONTAINER_ARCHIVED"],
    }),
    revokeKeys: define({
      summary: `Revoke the keys of all agents of a ${kind}`,
      description:
        `Revokes every active key of an agent in the ${kind}, paused or not. It is the second half of an emergency stop; creating ` +
        `keys and resuming the agents reverses it. People only, with step-up. ${REPEATS}`,
      tag: kind === "team" ? "Teams" : "Projects",
      access: manages("never", kind, { role: "admin", stepUp: true }),
      rate: "keyRevoke",
      http: { method: "post", path: `/v1/${kind}s/:id/revoke-agent-keys`, successStatus: 200 },
      params,
      output: z.strictObject({
        revoked: z.int().min(0).meta({ description: "Keys that this call has revoked." }),
        remaining,
      }),
      errors: ["NOT_FOUND", "CONTAINER_ARCHIVED"],
    }),
  }) as const;

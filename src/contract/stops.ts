import { z } from "zod";
import { manages } from "./access.ts";
import { define } from "./define.ts";
import { uuid } from "./primitives.ts";

/** Agents that one request stops at the most: its answer comes in time, and its entry in the audit log names each of them. */
export const STOPPED_AT_ONCE = 500;

const params = z.strictObject({ id: uuid });

const remaining = z
  .int()
  .min(0)
  .meta({ description: "How many agents are left: repeat the call until it is 0." });

const REPEATS = `A call handles as many agents as its time allows, at most ${STOPPED_AT_ONCE}: repeat it until \`remaining\` is 0. Repeating it is safe.`;

/** The two halves of an emergency stop of all agents in a team or a project. */
export const stopsOf = <K extends "team" | "project">(kind: K) =>
  ({
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
        `Revokes every active key of an agent in the ${kind}, paused or not. It is the second half of an emergency stop; minting ` +
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

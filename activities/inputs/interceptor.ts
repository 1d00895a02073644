import { ApplicationFailure } from "@temporalio/activity";
import type { ActivityInterceptorsFactory } from "@temporalio/worker";
import { scopedAgents, refusedInput } from "./activity-inputs.ts";
import type { AgentScopes } from "./agent-scopes.ts";

/** The type of the failure that an activity ends with which was given an input that no workflow of this service gives it. */
export const INPUT_REFUSED = "ActivityInputRefused";

/** Of what is refused, for log and metrics; says nothing of values. */
export type OnInputRefused = (activity: string, reason: string) => void;

/**
 * Keeps activities from running with an input that is not as their types say, or that names an agent under a project or team
 * that is not its own. For every worker that has activities; what is refused is not tried again.
 */
export const judgedInputs =
  (scopes: AgentScopes, onRefused: OnInputRefused): ActivityInterceptorsFactory =>
  ({ info: { activityType } }) => ({
    inbound: {
      async execute(input, next) {
        const reason = refusedInput(activityType, input.args) ?? (await foreignAgent(scopes, input.args));
        if (reason === null) return next(input);
        onRefused(activityType, reason);
        throw ApplicationFailure.nonRetryable(`${activityType} is refused: ${reason}`, INPUT_REFUSED);
      },
    },
  });

async function foreignAgent(scopes: AgentScopes, args: readonly unknown[]): Promise<string | null> {
  const checks = await Promise.all(scopedAgents(args).map((agent) => scopes.isOf(agent)));
  return checks.every(Boolean) ? null : "it names an agent under a project or team that is not its own";
}

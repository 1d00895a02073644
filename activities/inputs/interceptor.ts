import { ApplicationFailure } from "@temporalio/activity";
import type { ActivityInterceptorsFactory } from "@temporalio/worker";
import { placedAgents, refusedInput } from "./activity-inputs.ts";
import type { AgentPlaces } from "./agent-places.ts";

/** The type of the failure that an activity ends with which was given what nobody of this service gives it. */
export const INPUT_REFUSED = "ActivityInputRefused";

/** Of what is refused, for log and metrics; says nothing of values. */
export type OnInputRefused = (activity: string, reason: string) => void;

/**
 * Keeps activities from running with an input that is not as their types say, or that names an agent under a project or team
 * that is not its own. For every worker that has activities; what is refused is not tried again.
 */
export const judgedInputs =
  (places: AgentPlaces, onRefused: OnInputRefused): ActivityInterceptorsFactory =>
  ({ info: { activityType } }) => ({
    inbound: {
      async execute(input, next) {
        const reason = refusedInput(activityType, input.args) ?? (await refusedPlace(places, input.args));
        if (reason === null) return next(input);
        onRefused(activityType, reason);
        throw ApplicationFailure.nonRetryable(`${activityType} is refused: ${reason}`, INPUT_REFUSED);
      },
    },
  });

async function refusedPlace(places: AgentPlaces, args: readonly unknown[]): Promise<string | null> {
  const ofPlace = await Promise.all(placedAgents(args).map((agent) => places.isOf(agent)));
  return ofPlace.every(Boolean) ? null : "it names an agent where it does not lie";
}

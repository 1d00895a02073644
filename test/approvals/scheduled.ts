import { randomUUID } from "node:crypto";
import { defaultPayloadConverter, type Payload } from "@temporalio/common";
import { msToTs } from "@temporalio/common/lib/time.js";
import type { temporal } from "@temporalio/proto";
import proto from "@temporalio/proto";
import type { TestService } from "../support/service.ts";
import { until } from "../support/world.ts";

/** An activity that an intruder schedules who has nothing but Temporal's address. */
export interface Scheduled {
  readonly name: string;
  readonly input?: unknown;
  /** A payload that the service itself has written. */
  readonly sealed?: Payload;
  /** The service's own, unless it says otherwise. */
  readonly taskQueue?: string;
}

/** How it ended: with an answer, or with a failure of that type that is tried again or not. */
export interface ScheduledEnd {
  readonly failure: string | null;
  readonly isRetryable: boolean;
  readonly answer: unknown;
}

const POLL_MS = 60_000;
const bound = msToTs("1 minute");

/** A workflow of the test's own, on a task queue of its own, that has the service's workers run these activities. */
export async function schedule(
  { connections }: TestService,
  activities: readonly Scheduled[],
): Promise<readonly ScheduledEnd[]> {
  const { addresses, temporal: client } = connections;
  const { temporalNamespace: namespace } = addresses;
  const [workflowId, queue] = [`forger/${randomUUID()}`, `forger-${randomUUID()}`];
  const service = client.workflowService;
  await service.startWorkflowExecution({
    namespace,
    workflowId,
    requestId: randomUUID(),
    workflowType: { name: "forger" },
    taskQueue: { name: queue },
    workflowExecutionTimeout: msToTs("2 minutes"),
  });
  const { taskToken } = await client.withDeadline(Date.now() + POLL_MS, () =>
    service.pollWorkflowTaskQueue({ namespace, taskQueue: { name: queue } }),
  );
  await service.respondWorkflowTaskCompleted({
    namespace,
    taskToken,
    commands: activities.map(({ input, name, sealed, taskQueue = addresses.taskQueue }, index) => ({
      commandType: proto.temporal.api.enums.v1.CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
      scheduleActivityTaskCommandAttributes: {
        activityId: String(index),
        activityType: { name },
        taskQueue: { name: taskQueue },
        input: { payloads: payloadsOf(input, sealed) },
        startToCloseTimeout: bound,
        scheduleToCloseTimeout: bound,
        retryPolicy: { maximumAttempts: 1 },
      },
    })),
  });
  const handle = client.workflow.getHandle(workflowId);
  const ends = await until("the activities have ended", async () => {
    const { events } = await handle.fetchHistory();
    const found = endsIn(events ?? []);
    return found.length === activities.length ? found : null;
  });
  await handle.terminate("the test has seen it");
  return ends;
}

const payloadsOf = (input: unknown, sealed: Payload | undefined): Payload[] => {
  if (sealed !== undefined) return [sealed];
  return input === undefined ? [] : [defaultPayloadConverter.toPayload(input)];
};

/** In the order in which they were scheduled. */
function endsIn(events: readonly temporal.api.history.v1.IHistoryEvent[]): readonly ScheduledEnd[] {
  const ends = events.flatMap((event): { at: number; end: ScheduledEnd }[] => {
    const { activityTaskCompletedEventAttributes: done, activityTaskFailedEventAttributes: failed } = event;
    if (done !== null && done !== undefined) {
      const [payload] = done.result?.payloads ?? [];
      const answer = payload === undefined ? null : defaultPayloadConverter.fromPayload<unknown>(payload);
      return [{ at: Number(done.scheduledEventId), end: { failure: null, isRetryable: false, answer } }];
    }
    if (failed === null || failed === undefined) return [];
    const info = failed.failure?.applicationFailureInfo;
    const end = {
      failure: `${info?.type ?? "unknown"}: ${failed.failure?.message ?? ""}`,
      isRetryable: info?.nonRetryable !== true,
      answer: null,
    };
    return [{ at: Number(failed.scheduledEventId), end }];
  });
  return ends.toSorted((one, other) => one.at - other.at).map(({ end }) => end);
}

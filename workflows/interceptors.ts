import {
  ApplicationFailure,
  log,
  type WorkflowInboundCallsInterceptor,
  type WorkflowInternalsInterceptor,
  workflowInfo,
  type WorkflowInterceptorsFactory,
  type WorkflowOutboundCallsInterceptor,
} from "@temporalio/workflow";
import {
  answered,
  enveloped,
  forActivity,
  forQuery,
  forSignal,
  forStart,
  forUpdate,
  openAnswer,
  openMessage,
  type Opened,
  type PayloadRefusal,
} from "../src/messages/envelope.ts";
import { REFUSED } from "../src/messages/guards/batch-refusals.ts";

/**
 * Maximum age of an update at the start of the run that accepts it, including clock differences. Temporal accepts an
 * update id once per run, so this limits replays of an earlier run's update.
 */
const UPDATE_AGE_MAX_MS = 120_000;

const failure = (what: string, refused: PayloadRefusal): ApplicationFailure =>
  ApplicationFailure.nonRetryable(`${what} is not of this service: ${refused}`, REFUSED);

/**
 * Error of a payload whose master key this worker lacks. Unlike a failure it fails the workflow's task, which Temporal
 * retries until a worker has the key.
 */
const lackOfKey = (what: string): Error =>
  new Error(`${what} is sealed under a master key that this worker does not have`);

function taken<T>(what: string, opened: Opened<T>): T {
  if (opened.ok) return opened.value;
  throw opened.refused === "unknown_key" ? lackOfKey(what) : failure(what, opened.refused);
}

/** Accepts only messages sent to this workflow for this purpose. */
const inbound: WorkflowInboundCallsInterceptor = {
  execute(input, next) {
    const opened = openMessage(forStart(workflowInfo().workflowType), input.args);
    if (!opened.ok && opened.refused === "unknown_key") return Promise.reject(lackOfKey("the input"));
    if (!opened.ok) return Promise.reject(failure("the input", opened.refused));
    return next({ ...input, args: [...opened.value.args] });
  },

  validateUpdate(input, next) {
    const what = "the update";
    const opened = openMessage(forUpdate(input.name, input.updateId), input.args);
    // Also under an unknown key: a refused update leaves no history, and its sender retries.
    if (!opened.ok) throw failure(what, opened.refused);
    const { args, sentAt = 0 } = opened.value;
    if (sentAt < workflowInfo().runStartTime.getTime() - UPDATE_AGE_MAX_MS) throw failure(what, "misplaced");
    next({ ...input, args: [...args] });
  },

  async handleUpdate(input, next) {
    const purpose = forUpdate(input.name, input.updateId);
    const { args } = taken("the update", openMessage(purpose, input.args));
    return answered(purpose, await next({ ...input, args: [...args] }));
  },

  async handleSignal(input, next) {
    const opened = openMessage(forSignal(input.signalName), input.args);
    if (opened.ok) await next({ ...input, args: [...opened.value.args] });
    else if (opened.refused === "unknown_key") throw lackOfKey("a signal");
    else log.warn("a signal was ignored", { signal: input.signalName, refused: opened.refused });
  },

  async handleQuery(input, next) {
    // Operators query without arguments, in the Temporal UI and with its CLI.
    if (input.args.length === 0) return next(input);
    const { args } = taken("the query", openMessage(forQuery(input.queryName), input.args));
    return next({ ...input, args: [...args] });
  },
};

const outbound = (failTask: (error: Error) => Promise<never>): WorkflowOutboundCallsInterceptor => ({
  async scheduleActivity(input, next) {
    const purpose = forActivity(input.activityType);
    const opened = openAnswer(purpose, await next({ ...input, args: enveloped(purpose, input.args) }));
    const what = `the result of ${input.activityType}`;
    if (!opened.ok && opened.refused === "unknown_key") return failTask(lackOfKey(what));
    return taken(what, opened);
  },

  continueAsNew(input, next) {
    return next({ ...input, args: enveloped(forStart(input.options.workflowType), input.args) });
  },
});

/** Id that the SDK gives a query which comes without a workflow task. */
const QUERY_ALONE = "legacy_query";

/**
 * Fails a query before which the SDK has applied events that no workflow task has begun with, such as a fired timer.
 * Commands that these caused would precede the updates of the next task, and follow them in every replay: the workflow
 * could never be replayed. A failed query has the worker forget the workflow and its commands instead. The events of a
 * task come with its time, those of a query with the time of the task before.
 */
function internals(): WorkflowInternalsInterceptor {
  let [taskAt, isAhead] = ["", false];
  return {
    activate(input, next) {
      const { isReplaying, jobs, timestamp } = input.activation;
      if (jobs?.some(({ queryWorkflow }) => queryWorkflow?.queryId === QUERY_ALONE) && isAhead)
        throw new Error("the query came together with events of no workflow task; repeat it");
      if (jobs?.some(({ queryWorkflow }) => !queryWorkflow) && input.batchIndex === 0) {
        const at = `${String(timestamp?.seconds)}.${String(timestamp?.nanos)}`;
        isAhead = !isReplaying && at === taskAt;
        taskAt = at;
      }
      next(input);
    },
  };
}

/**
 * Fails the current task with an error that workflow code cannot catch: it would act as if the activity had failed. The
 * code goes no further.
 */
class TaskFailure {
  #error: Error | null = null;

  fail(error: Error): Promise<never> {
    this.#error = error;
    return new Promise(() => undefined);
  }

  readonly internals: WorkflowInternalsInterceptor = {
    concludeActivation: (input, next) => {
      if (this.#error !== null) throw this.#error;
      return next(input);
    },
  };
}

export const interceptors: WorkflowInterceptorsFactory = () => {
  const task = new TaskFailure();
  return {
    inbound: [inbound],
    outbound: [outbound((error) => task.fail(error))],
    internals: [internals(), task.internals],
  };
};

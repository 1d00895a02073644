import type { Client } from "@temporalio/client";

/** History of a workflow: its runs, and the events of all of them. */
export interface Course {
  readonly runs: number;
  readonly events: number;
}

export const NO_COURSE: Course = { runs: 0, events: 0 };

export const plus = (a: Course, b: Course): Course => ({
  runs: a.runs + b.runs,
  events: a.events + b.events,
});
export const minus = (a: Course, b: Course): Course => ({
  runs: a.runs - b.runs,
  events: a.events - b.events,
});

interface EndedRun {
  readonly events: number;
  readonly before: string | null;
}

/** Counts the events of workflows over all their runs, from each run's first event back to the run it continues. */
export class Histories {
  readonly #client: Client;
  readonly #ended = new Map<string, EndedRun>();

  constructor(client: Client) {
    this.#client = client;
  }

  async courseOf(workflowIds: readonly string[]): Promise<Course> {
    let total = NO_COURSE;
    for (const workflowId of workflowIds) total = plus(total, await this.#course(workflowId));
    return total;
  }

  async #course(workflowId: string): Promise<Course> {
    const current = await this.#client.workflow.getHandle(workflowId).describe();
    let course: Course = { runs: 1, events: current.historyLength };
    let runId = await this.#runBefore(workflowId, current.runId);
    while (runId !== null) {
      const run = await this.#endedRun(workflowId, runId);
      course = plus(course, { runs: 1, events: run.events });
      runId = run.before;
    }
    return course;
  }

  async #endedRun(workflowId: string, runId: string): Promise<EndedRun> {
    const known = this.#ended.get(runId);
    if (known !== undefined) return known;
    const { historyLength } = await this.#client.workflow.getHandle(workflowId, runId).describe();
    const run = { events: historyLength, before: await this.#runBefore(workflowId, runId) };
    this.#ended.set(runId, run);
    return run;
  }

  async #runBefore(workflowId: string, runId: string): Promise<string | null> {
    const { history } = await this.#client.workflowService.getWorkflowExecutionHistory({
      namespace: this.#client.options.namespace,
      execution: { workflowId, runId },
      maximumPageSize: 1,
    });
    const started = history?.events?.[0]?.workflowExecutionStartedEventAttributes;
    const before = started?.continuedExecutionRunId ?? "";
    return before === "" ? null : before;
  }
}

import { Worker, type WorkerOptions } from "@temporalio/worker";
import { expect } from "chai";
import { sideTaskQueue, SIDE_QUEUES } from "../../src/messages/task-queues.ts";
import { startTestService } from "../support/service.ts";

/** With what a service's workers are made, by their task queues. */
async function optionsOfWorkers(): Promise<ReadonlyMap<string, WorkerOptions>> {
  const made = new Map<string, WorkerOptions>();
  const create = Worker.create.bind(Worker);
  Worker.create = (options) => {
    made.set(options.taskQueue ?? "", options);
    return create(options);
  };
  try {
    await (await startTestService()).stop();
  } finally {
    Worker.create = create;
  }
  return made;
}

/** How fast a burst goes on a busy machine says nothing of a bound: what the workers are told does. */
describe("what the workers of one process begin at once", () => {
  it("a burst of settlements is spread, 40 a second, and holds up nothing a person waits for", async () => {
    const made = await optionsOfWorkers();
    const [taskQueue = ""] = made.keys();
    const queues = [taskQueue, ...SIDE_QUEUES.map((waitedFor) => sideTaskQueue(taskQueue, waitedFor))];
    expect([...made.keys()]).to.have.members(queues);
    const bounded = [...made].filter(
      ([, { maxActivitiesPerSecond }]) => maxActivitiesPerSecond !== undefined,
    );
    expect(bounded.map(([queue, options]) => [queue, options.maxActivitiesPerSecond])).to.deep.equal([
      [sideTaskQueue(taskQueue, "settlements"), 40],
    ]);
    const places = queues.slice(1).map((queue) => made.get(queue)?.maxConcurrentActivityTaskExecutions);
    expect(places, "what waits for one of them waits for itself alone").to.deep.equal([100, 100, 200, 300]);
  });
});

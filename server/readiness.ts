import proto from "@temporalio/proto";
import type { Wallets } from "../src/rails/wallet/index.ts";
import type { Connections } from "../src/store/connections.ts";

const CHECK_MS = 2_000;

/** The parts that are not usable now: the database, the engine, a worker that polls, the chain where one is set up. */
export async function missingParts(connections: Connections, wallets: Wallets | null): Promise<string[]> {
  const parts = await Promise.all([
    check("MongoDB", () => connections.db.command({ ping: 1 })),
    check("Temporal", () => pollers(connections)),
    check("a worker", async () => {
      if ((await pollers(connections)) === 0) throw new Error("no worker polls");
    }),
    wallets === null
      ? null
      : check("the chain", async () => {
          await wallets.rpc.check();
          await wallets.rpc.head();
        }),
  ]);
  return parts.filter((part) => part !== null);
}

async function check(part: string, probe: () => Promise<unknown>): Promise<string | null> {
  try {
    await probe();
    return null;
  } catch {
    return part;
  }
}

async function pollers({ addresses, temporal: client }: Connections): Promise<number> {
  const described = await client.withDeadline(Date.now() + CHECK_MS, () =>
    client.workflowService.describeTaskQueue({
      namespace: addresses.temporalNamespace,
      taskQueue: { name: addresses.taskQueue },
      taskQueueType: proto.temporal.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    }),
  );
  return described.pollers.length;
}

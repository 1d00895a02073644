import { setTimeout as sleep } from "node:timers/promises";
import { Client, Connection } from "@temporalio/client";
import { MongoClient } from "mongodb";
import { readTemporal } from "../../server/temporal-settings.ts";
import { longestGapMs } from "../chaos/report.ts";
import type { Addresses, Probe } from "../chaos/site.ts";

const EVERY_MS = 300;
const CALL_MS = 1_000;
const STAY_MS = 600_000;
/** Workflows, which Temporal spreads over its shards. */
const WORKFLOWS = 8;
const NAME = "probe";

type Ask = () => Promise<unknown>;

/** Asks both engines, without the service, for the least that a payment takes: a write to a majority, a signal to a workflow. */
export async function startProbe(
  { mongodbUri, temporalAddress, temporalNamespace }: Addresses,
  env: NodeJS.ProcessEnv,
): Promise<Probe> {
  const mongo = new MongoClient(mongodbUri, { serverSelectionTimeoutMS: CALL_MS, socketTimeoutMS: CALL_MS });
  const { options } = readTemporal(env).readSecurity();
  const connection = await Connection.connect({ address: temporalAddress, ...options });
  const client = new Client({ connection, namespace: temporalNamespace });
  const workflows = Array.from({ length: WORKFLOWS }, (_none, index) => `${NAME}/${String(index)}`);
  const counter = mongo.db(NAME).collection<{ _id: string }>(NAME);
  const signal = (workflowId: string) => () =>
    client.connection.withDeadline(Date.now() + CALL_MS, () =>
      client.workflow.signalWithStart(NAME, {
        workflowId,
        taskQueue: NAME,
        workflowExecutionTimeout: STAY_MS,
        signal: NAME,
      }),
    );
  const asks: readonly Ask[] = [
    () =>
      counter.updateOne(
        { _id: NAME },
        { $inc: { count: 1 } },
        { upsert: true, writeConcern: { w: "majority" } },
      ),
    ...workflows.map(signal),
  ];
  await Promise.all(asks.map((ask) => ask()));
  const startedAt = performance.now();
  const stopping = new AbortController();
  const answers = asks.map((ask) => repeat(ask, stopping.signal));
  return {
    stop: async () => {
      const endedAt = performance.now();
      stopping.abort();
      const all = await Promise.all(answers);
      await Promise.all([mongo.close(), connection.close()]);
      return Math.max(...all.map((each) => longestGapMs(each, { startedAt, endedAt })));
    },
  };
}

async function repeat(ask: Ask, signal: AbortSignal): Promise<readonly { readonly atMs: number }[]> {
  const answers = [];
  while (!signal.aborted) {
    const isAnswered = await ask().then(
      () => true,
      () => false,
    );
    if (isAnswered) answers.push({ atMs: performance.now() });
    await sleep(EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
  return answers;
}

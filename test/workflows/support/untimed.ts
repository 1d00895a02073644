import { randomUUID } from "node:crypto";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection } from "@temporalio/worker";
import { endCallContext } from "../../../src/lib/call-context.ts";
import { GrpcRetries } from "../../../src/lib/grpc-retries.ts";
import { testPayloads } from "../../support/payloads.ts";
import type { Stage, StageOptions, Theatre } from "./stage.ts";
import { openTheatre } from "./stage.ts";

type Play = (plot: (stage: Stage) => Promise<void>, options?: StageOptions) => Promise<void>;

/** Gives the tests of a file a worker on the run's own Temporal, for scenes in which no time has to pass. */
export function useStage({ isEncrypted = false } = {}): Play {
  let theatre: Theatre | null = null;
  let connections: { close(): Promise<void> }[] = [];
  before(async () => {
    const address = process.env["TEST_TEMPORAL_ADDRESS"];
    const namespace = process.env["TEST_TEMPORAL_NAMESPACE"];
    if (address === undefined || namespace === undefined) {
      throw new Error("TEST_TEMPORAL_ADDRESS is not set: run the tests with `npm test`");
    }
    const retries = new GrpcRetries();
    const connection = await Connection.connect({ address, interceptors: [retries.interceptor] });
    const native = await NativeConnection.connect({ address });
    const payloads = testPayloads({ isEncrypted });
    const client = new Client({ connection, namespace, ...payloads.client });
    theatre = await openTheatre({ client, native, payloads, taskQueue: `stage-${randomUUID()}` });
    connections = [{ close: () => retries.end() }, connection, native];
  });
  after(async () => {
    await theatre?.close();
    for (const connection of connections) await connection.close();
    for (const connection of connections) endCallContext(connection);
  });
  return async (plot, options = {}) => {
    if (theatre === null) throw new Error("a scene was played outside a test");
    await theatre.play(randomUUID(), options, plot);
  };
}

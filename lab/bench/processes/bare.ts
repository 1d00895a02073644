import { randomUUID } from "node:crypto";
import { Client, Connection } from "@temporalio/client";
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Worker } from "@temporalio/worker";
import express from "express";
import { listen } from "../../../server/http/server.ts";
import { createLogger } from "../../../src/lib/logger.ts";
import { installRuntime } from "../../../server/worker.ts";
import { builtFile } from "../../../src/lib/package-root.ts";
import { type Role, runRole } from "./role.ts";

export interface BareConfig {
  readonly temporalAddress: string;
  readonly temporalNamespace: string;
  readonly taskQueue: string;
  readonly logFile: string;
  /** Whether its workflows have an activity. */
  readonly hasActivity: boolean;
}

/** Activities of the bare workflows. */
export interface BareActivities {
  run(id: string): Promise<void>;
}

/** An activity that does nothing, and who waits for it to have run. */
class Runs {
  readonly #waiting = new Map<string, () => void>();

  readonly activities: BareActivities = {
    run: (id) => {
      this.#waiting.get(id)?.();
      this.#waiting.delete(id);
      return Promise.resolve();
    },
  };

  ran(id: string): Promise<void> {
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }
}

/**
 * One update per request and nothing else: no credential, no body, no batching. Of a new actor, its start before it. Or a
 * workflow with an activity, answered once that has run.
 */
function application(client: Client, taskQueue: string, runs: Runs) {
  const app = express();
  app.disable("etag");
  app.post("/actors/:id", async (request, response) => {
    await client.workflow.getHandle(request.params.id).executeUpdate("touch");
    response.json({});
  });
  app.post("/actors", async (_request, response) => {
    const handle = await client.workflow.start("bare", { workflowId: `bare/${randomUUID()}`, taskQueue });
    await handle.executeUpdate("touch");
    response.status(201).json({});
  });
  app.post("/runs", async (_request, response) => {
    const id = randomUUID();
    const ran = runs.ran(id);
    await client.workflow.start("bareDelivery", { workflowId: `run/${id}`, taskQueue, args: [id] });
    await ran;
    response.status(201).json({});
  });
  return app;
}

/** Configured like the service's worker (server/worker.ts), but for its workflows, and its activities where it has any. */
async function startWorker(config: BareConfig, runs: Runs) {
  const native = await NativeConnection.connect({ address: config.temporalAddress });
  const worker = await Worker.create({
    connection: native,
    namespace: config.temporalNamespace,
    taskQueue: config.taskQueue,
    workflowBundle: await bundleWorkflowCode({
      workflowsPath: builtFile("lab/bench/processes/bare-workflow.ts"),
      logger: new DefaultLogger("WARN"),
    }),
    ...(config.hasActivity ? { activities: runs.activities } : {}),
    shutdownGraceTime: "5 seconds",
  });
  const run = worker.run();
  return {
    async stop() {
      worker.shutdown();
      await run;
      await native.close();
    },
  };
}

await runRole(async (given): Promise<Role> => {
  const config = given as BareConfig;
  installRuntime(createLogger({ level: "info", file: config.logFile }));
  const http = await listen("127.0.0.1", 0);
  const connection = await Connection.connect({ address: config.temporalAddress });
  const runs = new Runs();
  const worker = await startWorker(config, runs);
  const client = new Client({ connection, namespace: config.temporalNamespace });
  http.serve(application(client, config.taskQueue, runs));
  return {
    port: http.port,
    async stop() {
      await http.drain();
      await worker.stop();
      await connection.close();
    },
  };
});

import { randomUUID } from "node:crypto";
import { Client, Connection } from "@temporalio/client";
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Worker } from "@temporalio/worker";
import express from "express";
import { listen } from "../../server/http/server.ts";
import { createLogger } from "../../server/logger.ts";
import { installRuntime } from "../../server/worker.ts";
import { builtFile } from "../../src/lib/package-root.ts";
import { type Role, runRole } from "./role.ts";

export interface BareConfig {
  readonly temporalAddress: string;
  readonly temporalNamespace: string;
  readonly taskQueue: string;
  readonly logFile: string;
}

/** One update per request and nothing else: no credential, no body, no batching. Of a new actor, its start before it. */
function application(client: Client, taskQueue: string) {
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
  return app;
}

/** Configured like the service's worker (server/worker.ts), but for its workflow and the activities it has none of. */
async function startWorker(config: BareConfig) {
  const native = await NativeConnection.connect({ address: config.temporalAddress });
  const worker = await Worker.create({
    connection: native,
    namespace: config.temporalNamespace,
    taskQueue: config.taskQueue,
    workflowBundle: await bundleWorkflowCode({
      workflowsPath: builtFile("bench/processes/bare-workflow.ts"),
      logger: new DefaultLogger("WARN"),
    }),
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
  const worker = await startWorker(config);
  const client = new Client({ connection, namespace: config.temporalNamespace });
  http.serve(application(client, config.taskQueue));
  return {
    port: http.port,
    async stop() {
      await http.drain();
      await worker.stop();
      await connection.close();
    },
  };
});

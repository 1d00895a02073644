import express from "express";
import { collectionsOf } from "../../../src/store/collections.ts";
import { connectMongo } from "../../../src/store/connections.ts";
import { listen } from "../../../server/http/server.ts";
import { projectView } from "../../../src/views/views.ts";
import { type Role, runRole } from "./role.ts";

export interface BareReadConfig {
  readonly mongodbUri: string;
  readonly baseUrl: string;
}

/** Answers the read of `GET /v1/projects/:id` without a credential, a limit or a pipeline. */
await runRole(async (config): Promise<Role> => {
  const { mongodbUri } = config as BareReadConfig;
  const { mongo, db } = await connectMongo(mongodbUri);
  const { projects } = collectionsOf(db);
  const http = await listen("127.0.0.1", 0);
  const app = express();
  app.get("/projects/:id", async ({ params }, response) => {
    const project = await projects.findOne({ _id: params.id });
    if (project === null) response.status(404).end();
    else response.json({ project: projectView(project, () => null) });
  });
  http.serve(app);
  return {
    port: http.port,
    async stop() {
      await http.drain();
      await mongo.close();
    },
  };
});

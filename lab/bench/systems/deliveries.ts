import { join } from "node:path";
import { webhookCollections } from "../../../src/store/webhook-documents.ts";
import { collectionsOf } from "../../../src/store/collections.ts";
import { connectMongo } from "../../../src/store/connections.ts";
import { SPREAD_AGENTS } from "../cases.ts";
import { Child } from "../child.ts";
import type { EventsPort } from "../processes/deliveries.ts";
import type { ServiceConfig } from "../processes/service.ts";
import { createOrganizationWithAgents } from "./payments.ts";
import { allDelivered, Receiver } from "./receiver.ts";
import { portOf, serviceEnvironment, type Site, type System, DELIVERED_EVENT } from "./system.ts";

const ANSWER_MS = 10_000;

/**
 * Events of agents that are delivered to one endpoint: a request is answered once its delivery was received and verified.
 * An event is published to the journal in the service's process, as the service does it, and nothing else is done to an agent.
 */
export async function startDeliveries(site: Site): Promise<System> {
  const receiver = await Receiver.start(site, "deliveries", "answers");
  const env = { ...serviceEnvironment(site, "bench_deliveries"), ...receiver.settings };
  const config: ServiceConfig = { env, logFile: join(site.dataDir, "logs", "deliveries.log") };
  const { profileDir } = site;
  const child = await Child.start({ entry: "processes/deliveries.ts", config, profileDir });
  const port = portOf(child.port);
  const { agents: all, token } = await createOrganizationWithAgents(env, port, 1);
  const endpointId = await receiver.subscribe(port, token, [DELIVERED_EVENT]);
  const events = await child.request<EventsPort>(null, ANSWER_MS);
  const frontPort = await receiver.takeEvents({ port: events.port, endpointId });
  const { mongo, db } = await connectMongo(String(env["MONGODB_URI"]));

  return {
    port: frontPort,
    pid: child.pid,
    receiverPid: receiver.pid,
    templates: (agents) =>
      Promise.resolve(
        (agents === "spread" ? all.slice(0, SPREAD_AGENTS) : all.slice(SPREAD_AGENTS)).map(({ id }) => ({
          path: `/agents/${id}/events`,
          headers: {},
          body: null,
        })),
      ),
    async settle(_agents, isQuick) {
      if (!isQuick) await allDelivered(db);
    },
    course: () => Promise.resolve(null),
    async audit(answered) {
      await allDelivered(db);
      const { forged, received } = await receiver.receipts();
      const counts = {
        events: await collectionsOf(db).events.countDocuments({ type: DELIVERED_EVENT }),
        delivered: await webhookCollections(db).deliveries.countDocuments({
          eventType: DELIVERED_EVENT,
          status: "succeeded",
        }),
        received: received[DELIVERED_EVENT] ?? 0,
      };
      if (forged === 0 && Object.values(counts).every((count) => count === answered)) return [];
      const listed = Object.entries(counts).map(([name, count]) => `${String(count)} ${name}`);
      return [`deliveries: ${String(answered)} answered, ${listed.join(", ")}, ${String(forged)} forged`];
    },
    async stop() {
      await mongo.close();
      await child.stop();
      await receiver.stop();
    },
  };
}

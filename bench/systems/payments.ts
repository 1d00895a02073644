import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "mongodb";
import { createOrganization } from "../../server/admin/create-organization.ts";
import { connectMongo } from "../../server/connections.ts";
import { agentWorkflowId, type AgentStateView, STATE_QUERY } from "../../src/messages/agent.ts";
import { type Case, SPREAD_AGENTS } from "../cases.ts";
import { Child } from "../child.ts";
import { Histories } from "../histories.ts";
import type { PaymentsConfig } from "../processes/payments.ts";
import { auditPayments, bookedByProcessor } from "./payments-audit.ts";
import { createAgents, type PayingAgent } from "./payments-agents.ts";
import { prepareWallets, spentOnChain } from "./wallets.ts";
import type { Site, System } from "./system.ts";
import { ORDER, portOf, serviceEnvironment, TRANSFER } from "./system.ts";

/** Longer than the actor leaves a confirmation out before it acts by itself (10 s). */
const SETTLE_MS = 30_000;
const SETTLE_POLL_MS = 500;

/** What differs between the rails that agents pay on. */
interface Paying {
  readonly name: "payments" | "wallet";
  readonly order: Readonly<Record<string, unknown>>;
  /** What the agents need before they pay; answers how many payments that took. */
  readonly prepare: (agents: readonly PayingAgent[], port: number, token: string) => Promise<number>;
  /** What the rail's own books have of approved payments, by name. */
  readonly booked: (db: Db, site: Site) => Promise<Readonly<Record<string, number>>>;
}

const BY_CARD: Paying = {
  name: "payments",
  order: ORDER,
  prepare: () => Promise.resolve(0),
  booked: bookedByProcessor,
};

const FROM_WALLETS: Paying = {
  name: "wallet",
  order: TRANSFER,
  prepare: prepareWallets,
  booked: (db, { evmRpcUrl }) => spentOnChain(db, evmRpcUrl),
};

/** (b) The service itself, whole: payments by card over REST. */
export const startPayments = (site: Site): Promise<System> => startPaying(site, BY_CARD);

/** The same from agents' wallets on the local chain; answered once they are final. */
export const startWalletPayments = (site: Site): Promise<System> => startPaying(site, FROM_WALLETS);

async function startPaying(site: Site, { booked, name, order, prepare }: Paying): Promise<System> {
  const env = serviceEnvironment(site, `bench_${name}`);
  const config: PaymentsConfig = { env, logFile: join(site.dataDir, "logs", `${name}.log`) };
  const { profileDir, temporal } = site;
  const child = await Child.start({ entry: "processes/payments.ts", config, profileDir });
  const port = portOf(child.port);
  const { agents: all, token } = await createOrganizationWithAgents(env, port);
  const prepared = await prepare(all, port, token);
  const { mongo, db } = await connectMongo(String(env["MONGODB_URI"]));
  const histories = new Histories(temporal);
  const agentsOf = (agents: Case["agents"]) =>
    agents === "spread" ? all.slice(0, SPREAD_AGENTS) : all.slice(SPREAD_AGENTS);
  const stateOf = ({ id }: PayingAgent) =>
    temporal.workflow.getHandle(agentWorkflowId(id)).query<AgentStateView>(STATE_QUERY);

  return {
    port,
    pid: child.pid,
    templates: (agents) =>
      Promise.resolve(
        agentsOf(agents).map(({ apiKey }) => ({
          path: "/v1/payments",
          headers: { authorization: `Bearer ${apiKey}` },
          body: order,
        })),
      ),
    settle: (agents, inAHurry) => settle(agentsOf(agents), stateOf, inAHurry),
    course: (agents) => histories.courseOf(agentsOf(agents).map(({ id }) => agentWorkflowId(id))),
    async audit(answered) {
      const states = await Promise.all(all.map(stateOf));
      return auditPayments(db, states, { answered: answered + prepared, booked: await booked(db, site) });
    },
    async stop() {
      await mongo.close();
      await child.stop();
    },
  };
}

async function createOrganizationWithAgents(env: NodeJS.ProcessEnv, port: number) {
  const owner = { email: "owner@example.com", password: "correct horse battery staple" };
  const { teamId } = await createOrganization(env, {
    name: "Bench",
    ownerEmail: owner.email,
    ownerPassword: owner.password,
    plan: "enterprise",
    restPerMinute: 1_000_000,
  });
  return createAgents({ port, owner, teamId, count: SPREAD_AGENTS + 1 });
}

/** Waits until every actor has seen everything through: nothing open; unless in a hurry, its record written too. */
async function settle(
  agents: readonly PayingAgent[],
  stateOf: (agent: PayingAgent) => Promise<AgentStateView>,
  inAHurry: boolean,
): Promise<void> {
  const deadline = Date.now() + SETTLE_MS;
  for (const agent of agents) {
    for (;;) {
      const { confirmedRevision, open, revision } = await stateOf(agent);
      const recorded = inAHurry || confirmedRevision === revision;
      if (recorded && Object.keys(open).length === 0) break;
      if (Date.now() > deadline) throw new Error(`agent ${agent.id} does not come to rest`);
      await sleep(SETTLE_POLL_MS);
    }
  }
}

import { expect } from "chai";
import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { CardLedgerDocument } from "../../src/rails/card/network-books.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { Api } from "../support/api.ts";
import { ContractApi } from "../support/contract-api.ts";
import type { Child } from "../support/process.ts";
import { shortOrSoak } from "../support/soak.ts";
import { Load } from "./support/load.ts";
import { roleEnvironment, Roles } from "./support/roles.ts";
import { Tenant } from "./support/tenant.ts";

const ROUNDS = shortOrSoak(3, 60);
const CLIENTS = 24;
const SETTLED_MS = 120_000;

describe("A server that is stopped in the midst of payments, and wakes up after a pause", () => {
  const env = roleEnvironment();
  const roles = new Roles(env);
  let sleeper: Child;
  let api: Api;
  let beside: ContractApi;
  let tenant: Tenant;

  before(async () => {
    const [first, second] = await Promise.all([
      roles.startServer(),
      roles.startServer(),
      roles.startWorker(),
    ]);
    sleeper = first.child;
    api = new Api(first.baseUrl);
    beside = new ContractApi(second.baseUrl);
    tenant = await Tenant.create({ baseUrl: second.baseUrl, mongodbUri: env.MONGODB_URI, env });
  });
  after(() => roles.stop());

  const captures = (): Promise<string[]> =>
    tenant.withDatabase(async (db) => {
      const ledger = db.collection<CardLedgerDocument>(COLLECTIONS.sandboxCardLedger);
      const { organizationId } = tenant.organization;
      const found = await ledger.find({ organizationId, status: "captured" }).toArray();
      return found.map(({ transactionId }) => transactionId).toSorted();
    });

  it("captures nothing after the pause was answered through another; resumed, each is paid once", async () => {
    const { token } = tenant;
    for (let round = 1; round <= ROUNDS; round += 1) {
      const { agent, apiKey } = await tenant.createAgent({ budgetCents: 10_000_000 });
      const load = new Load({
        apiKeys: [apiKey],
        apis: [api],
        clients: CLIENTS,
        name: `round-${String(round)}`,
      });
      await load.untilPaid(CLIENTS);
      // At any moment: between any two steps of any payment.
      await sleep(randomInt(50));
      sleeper.signal("SIGSTOP");
      await beside.ok("pauseAgent", 200, { token, id: agent.id });
      const answered = await captures();
      sleeper.signal("SIGCONT");
      await load.stop();
      expect(await captures(), `round ${String(round)}`).to.deep.equal(answered);
      await beside.ok("resumeAgent", 200, { token, id: agent.id });
      await tenant.expectBooksToAgree(SETTLED_MS);
    }
  });
});

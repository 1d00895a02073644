import { expect } from "chai";
import type { Document } from "mongodb";
import { RecordProofs } from "../../server/admin/reconcile/proofs.ts";
import { readRecords } from "../../server/admin/restore-ledger/records.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { collectionsOf } from "../../src/store/collections.ts";
import { TestBudgets } from "../support/budgets.ts";
import { TEST_MASTER_KEY } from "../support/payloads.ts";
import { sharedService } from "../support/service.ts";
import { elevate, newWorld, type TestAgent, until, type World } from "../support/world.ts";

/** Changes by an intruder who can write to MongoDB and has no key of the service. */
describe("a ledger restored from records that something else than the service has changed", () => {
  const proofs = new RecordProofs(MasterKey.parse(TEST_MASTER_KEY, "a test"));
  let world: World;
  let agent: TestAgent;
  let paid: string;
  let held: string;

  const collection = (name: string) => world.service.db.collection<{ _id: string }>(name);

  before(async () => {
    world = await newWorld(sharedService());
    await elevate(world);
    agent = await world.agent({ autoApprovalThresholdCents: 500, budgetCents: 10_000 });
    const budgets = new TestBudgets(world);
    await budgets.setTeam({ capCents: 5_000 });
    await budgets.setProject({ capCents: 6_000 });
    ({
      transaction: { id: paid },
    } = await agent.pay({ amountCents: 300 }));
    ({ transactionId: held } = await agent.hold({ amountCents: 600 }));
    const { projectId, teamId } = world.organization;
    for (const [name, _id] of [
      ["projects", projectId],
      ["teams", teamId],
    ] as const)
      await until("the caps are recorded", () =>
        collection(name).findOne({ _id, "cap.capCents": { $gt: 0 } }),
      );
    await until("the payment is recorded", () => collection("transactions").findOne({ _id: paid }));
  });

  /** Returns the reason why nothing is restored; null if the records are taken. */
  async function refusal(): Promise<string | null> {
    const { connections, db } = world.service;
    const project = await collectionsOf(db).projects.findOne({ _id: world.organization.projectId });
    if (project === null) throw new Error("there is a project");
    return readRecords(connections, project, proofs).then(() => null, String);
  }

  const cases: Readonly<Record<string, () => readonly [name: string, id: string, change: Document]>> = {
    "an agent's budget": () => ["agents", agent.id, { $set: { "policy.budgetCents": 1e9 } }],
    "an agent's status": () => ["agents", agent.id, { $set: { accountStatus: "paused" } }],
    "an agent's team": () => ["agents", agent.id, { $set: { teamId: "another" } }],
    "an agent's account that has no proof": () => ["agents", agent.id, { $unset: { accountProof: "" } }],
    "a team's cap": () => ["teams", world.organization.teamId, { $set: { "cap.capCents": 1e9 } }],
    "a team's cap that was struck": () => ["teams", world.organization.teamId, { $unset: { cap: "" } }],
    "a project's cap": () => ["projects", world.organization.projectId, { $set: { "cap.capCents": null } }],
    "a project's calendar": () => [
      "projects",
      world.organization.projectId,
      { $set: { calendar: { timezone: "Asia/Tokyo", version: 9 } } },
    ],
    "a paid payment that is called failed": () => [
      "transactions",
      paid,
      { $set: { status: "failed", "ledgerState.books": null } },
    ],
    "a paid payment's amount": () => ["transactions", paid, { $set: { "ledgerState.amountMc": 1_000 } }],
    "a paid payment's time": () => ["transactions", paid, { $set: { createdAt: new Date(0) } }],
    "a paid payment's project": () => ["transactions", paid, { $set: { projectId: "another" } }],
    "a paid payment's agent": () => ["transactions", paid, { $set: { agentId: "another" } }],
    "a held payment that is called ended": () => [
      "transactions",
      held,
      { $set: { status: "denied", "ledgerState.phase": "done" } },
    ],
    "a held payment's recipient": () => ["transactions", held, { $set: { recipient: "another" } }],
  };
  for (const [what, of] of Object.entries(cases))
    it(`${what} is refused by name`, async () => {
      expect(await refusal()).to.equal(null);
      const [name, _id, change] = of();
      const before = await collection(name).findOneAndUpdate({ _id }, change);
      if (before === null) throw new Error(`${name} has no ${_id}`);
      try {
        expect(await refusal())
          .to.include(_id)
          .and.to.include("Nothing was done");
      } finally {
        await collection(name).replaceOne({ _id }, before);
      }
    });
});

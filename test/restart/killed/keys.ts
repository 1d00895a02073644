import { expect } from "chai";
import { collectionsOf } from "../../../src/store/collections.ts";
import { type AgentDocument, COLLECTIONS, type EventDocument } from "../../../src/store/documents.ts";
import { type ServiceProcess, until } from "../../support/process.ts";
import type { LifePoint } from "../support/life-points.ts";
import { agentIn, type Creator, LifeStage } from "../support/life-stage.ts";

/** The actor does itself what is unconfirmed 10 s after it was decided. */
const SWEPT_MS = 120_000;

interface Agent {
  readonly id: string;
  readonly apiKey: string;
}

/** Mints, a revocation, pauses and archives, at hand when the service is killed. */
export function keysAtHand() {
  let stage: LifeStage;
  let owner: Creator;
  let minting: Readonly<Record<"mint-proposed" | "mint-decided" | "mint-recorded", Agent>>;
  let revoking: Agent;
  let pausing: Readonly<Record<"pause-decided" | "pause-recorded", Agent>>;
  let archiving: Agent;
  /** Another one, whose archive is asked for again as soon as the service is back. */
  let repeating: Agent;
  let held: { readonly transactionId: string; readonly approvalId: string };

  const by = ({ id }: Pick<Agent, "id">) => ({ token: owner.token, id });
  const record = async ({ id }: Agent): Promise<AgentDocument> => {
    const found = await stage.db.collection<AgentDocument>(COLLECTIONS.agents).findOne({ _id: id });
    if (found === null) throw new Error("the agent has no record");
    return found;
  };

  async function newAgent(): Promise<Agent> {
    const body = { ...agentIn(owner), autoApprovalThresholdCents: 1_000 };
    const { agent, apiKey } = await stage.api.ok("createAgent", 201, { token: owner.token, body });
    return { id: agent.id, apiKey: apiKey ?? "" };
  }

  const statusOf = async (apiKey: string): Promise<number> =>
    (await stage.api.call("listPayments", { token: apiKey })).status;

  /** A mint that is held at the point, of an agent without a key. */
  async function dyingMint(point: LifePoint): Promise<Agent> {
    const agent = await newAgent();
    await stage.api.ok("revokeAgentKey", 200, by(agent));
    await stage.hold(point, () => stage.api.call("mintAgentKey", by(agent)));
    return agent;
  }

  /** A pause that is held at the point. */
  async function dyingPause(point: LifePoint): Promise<Agent> {
    const agent = await newAgent();
    await stage.hold(point, () => stage.api.call("pauseAgent", by(agent)));
    return agent;
  }

  /** Archived by its actor, with a payment on hold and a wallet that it has paid from. */
  async function dyingArchive(): Promise<void> {
    archiving = await newAgent();
    await stage.api.ok("fundAgentInSandbox", 200, { ...by(archiving), body: { amountCents: 500 } });
    await stage.tenant.api.pay(archiving.apiKey, {
      rail: "wallet",
      amountCents: 100,
      merchant: undefined,
      recipient: `0x${"5".repeat(40)}`,
    });
    const { approval, transaction } = await stage.tenant.api.pay(archiving.apiKey, { amountCents: 2_000 });
    held = { transactionId: transaction.id, approvalId: approval?.id ?? "" };
    await stage.hold("archive-decided", () => stage.api.call("archiveAgent", by(archiving)));
  }

  async function begin(service: ServiceProcess): Promise<void> {
    stage = await LifeStage.on(service);
    owner = await stage.person();
    await stage.elevate();
    minting = {
      "mint-proposed": await dyingMint("mint-proposed"),
      "mint-decided": await dyingMint("mint-decided"),
      "mint-recorded": await dyingMint("mint-recorded"),
    };
    revoking = await newAgent();
    await stage.hold("revoke-decided", () => stage.api.call("revokeAgentKey", by(revoking)));
    pausing = {
      "pause-decided": await dyingPause("pause-decided"),
      "pause-recorded": await dyingPause("pause-recorded"),
    };
    await dyingArchive();
    repeating = await newAgent();
    await stage.hold("archive-decided", () => stage.api.call("archiveAgent", by(repeating)));
    // Only the actors know of it.
    expect((await record(archiving)).lifecycle).to.equal("active");
    expect((await record(minting["mint-decided"])).key).to.equal(null);
  }

  async function meet(): Promise<void> {
    await stage.meet();
    await stage.elevate();
  }

  /** This key works, the one that the agent was created with does not, and no other is left to be chosen. */
  async function expectOneKey(agent: Agent, apiKey: string): Promise<void> {
    expect([await statusOf(apiKey), await statusOf(agent.apiKey)]).to.deep.equal([200, 401]);
    await stage.api.refused("mintAgentKey", 409, "KEY_ALREADY_EXISTS", by(agent));
    const { key } = await record(agent);
    expect(key?.last4).to.equal(apiKey.slice(-4));
  }

  const eventsOf = ({ id }: Agent, type: EventDocument["type"]): Promise<number> =>
    stage.db.collection<EventDocument>(COLLECTIONS.events).countDocuments({ agentId: id, type });

  /** An event is written beside the record that it tells of. */
  const toldOnce = (agent: Agent, type: EventDocument["type"]) =>
    until("it is told of once", SWEPT_MS, async () => ((await eventsOf(agent, type)) === 1 ? true : null));

  const tests = () =>
    describe("with a mint, a pause or an archive", () => {
      it("a revocation that was not answered is finished: its key is no longer valid", async () => {
        await until("its record has no key", SWEPT_MS, async () =>
          (await record(revoking)).key === null ? true : null,
        );
        expect(await statusOf(revoking.apiKey)).to.equal(401);
      });

      for (const point of ["pause-decided", "pause-recorded"] as const) {
        it(`killed at ${point}: the pause holds, its record shows it, one event; resumed it pays`, async () => {
          const agent = pausing[point];
          await until("its record says so", SWEPT_MS, async () =>
            (await record(agent)).lifecycle === "paused" ? true : null,
          );
          expect(await statusOf(agent.apiKey)).to.equal(403);
          await toldOnce(agent, "agent.paused");
          const again = await stage.api.ok("pauseAgent", 200, by(agent));
          expect(again.agent.state).to.equal("paused");
          expect(await eventsOf(agent, "agent.paused")).to.equal(1);
          await stage.api.ok("resumeAgent", 200, by(agent));
          const { transaction } = await stage.tenant.api.pay(agent.apiKey, { amountCents: 100 });
          expect(transaction.status).to.equal("approved");
        });
      }

      it("a repeated archive is 200 and complete, with one event", async () => {
        const { agent, walletsFailed } = await stage.api.ok("archiveAgent", 200, by(repeating));
        expect(agent).to.include({ state: "archived", key: null });
        expect(walletsFailed).to.deep.equal([]);
        expect(await statusOf(repeating.apiKey)).to.equal(401);
        await toldOnce(repeating, "agent.archived");
      });

      it("an archive that only the actor knows of is finished by it: record, hold, wallet, one event", async () => {
        const agent = await until("the actor finishes the archive", SWEPT_MS, async () => {
          const now = await record(archiving);
          return now.lifecycle === "archived" && now.walletDetached ? now : null;
        });
        expect(agent).to.deep.include({ key: null, reservedCents: 0, spentCents: 100 });
        expect(agent.archivedAt).not.to.equal(null);
        const transaction = await until("the hold has ended", SWEPT_MS, async () => {
          const found = await collectionsOf(stage.db).transactions.findOne({ _id: held.transactionId });
          return found?.status === "denied" ? found : null;
        });
        const approval = await collectionsOf(stage.db).approvals.findOne({ _id: held.approvalId });
        expect(approval).to.deep.include({ resolution: "denied", resolvedBy: null });
        expect(transaction).to.include({ denialCode: "AGENT_ARCHIVED" });
        await toldOnce(archiving, "agent.archived");
        expect(await statusOf(archiving.apiKey)).to.equal(401);
      });

      it("once more it is 200, and there is no second event", async () => {
        const { agent, walletsFailed } = await stage.api.ok("archiveAgent", 200, by(archiving));
        expect(agent).to.include({ state: "archived", key: null });
        expect(walletsFailed).to.deep.equal([]);
        expect(await eventsOf(archiving, "agent.archived")).to.equal(1);
      });

      it("a mint before its actor was asked came to nothing: the next gives the one working key", async () => {
        const agent = minting["mint-proposed"];
        expect((await record(agent)).key).to.equal(null);
        await expectOneKey(agent, (await stage.api.ok("mintAgentKey", 201, by(agent))).apiKey);
      });

      for (const point of ["mint-decided", "mint-recorded"] as const) {
        it(`a mint at ${point}: the record has the actor's key; a revoke and a mint replace it`, async () => {
          const agent = minting[point];
          const lost = await until("the record has the key", SWEPT_MS, async () => (await record(agent)).key);
          await stage.api.refused("mintAgentKey", 409, "KEY_ALREADY_EXISTS", by(agent));
          const { key } = await stage.api.ok("revokeAgentKey", 200, by(agent));
          expect(key).to.deep.include({ id: lost.id, status: "revoked" });
          await expectOneKey(agent, (await stage.api.ok("mintAgentKey", 201, by(agent))).apiKey);
        });
      }
    });

  return { begin, meet, close: () => stage.close(), tests };
}

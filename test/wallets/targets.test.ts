import { expect } from "chai";
import type { Db } from "mongodb";
import { zeroAddress } from "viem";
import type { NewFunding } from "../../src/rails/wallet/fundings.ts";
import { WalletTargets } from "../../src/rails/wallet/targets.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { COLLECTIONS } from "../../src/store/documents.ts";
import { testDatabase } from "../support/mongo.ts";
import { TEST_MASTER_KEY } from "../support/payloads.ts";

const profileOf = (organizationId: string, agentId: string) => ({
  organizationId,
  projectId: "p",
  teamId: "t",
  agentId,
  name: "Agent",
});
const OWN = profileOf("org_1", "agent_1");
const FOREIGN = { ...profileOf("org_2", "agent_2"), projectId: "p_2" };
const WALLET = {
  isTreasury: false,
  address: zeroAddress,
  chainCaip2: "eip155:1",
  owner: zeroAddress,
  spender: zeroAddress,
  factory: zeroAddress,
};

describe("wallet targets", () => {
  let db: Db;
  let close: () => Promise<void>;
  before(async () => {
    ({ close, db } = await testDatabase());
  });
  after(() => close());

  it("a target changed in MongoDB to fund another organization's agent funds nobody", async () => {
    const begun: NewFunding[] = [];
    let now = new Date();
    const targets = new WalletTargets({
      db,
      fundings: {
        begin: (funding) => {
          begun.push(funding);
          return Promise.reject(new Error("nothing is funded here"));
        },
        advance: () => Promise.reject(new Error("nothing is funded here")),
      },
      wallets: {
        of: (agentId) => {
          const { organizationId } = agentId === OWN.agentId ? OWN : FOREIGN;
          return Promise.resolve({ ...WALLET, agentId, organizationId });
        },
      },
      rpc: { balanceAt: () => Promise.resolve(0n) },
      tokenDecimals: 6,
      macs: MasterKey.parse(TEST_MASTER_KEY, "a test").macs("payment-proofs"),
      clock: () => now,
      audit: () => Promise.resolve(),
      onWarning: () => undefined,
    });
    const agents = db.collection<{ _id: string; lifecycle: string }>(COLLECTIONS.agents);
    await agents.insertOne({ _id: OWN.agentId, lifecycle: "active" });
    await targets.set(OWN, 500);
    await targets.keep();
    expect(begun.map(({ profile }) => profile.agentId)).to.deep.equal([OWN.agentId]);
    const stored = db.collection<{ _id: string }>(COLLECTIONS.walletTargets);
    for (const field of ["agentId", "projectId"] as const) {
      await targets.set(OWN, 500);
      await stored.updateOne({ _id: OWN.agentId }, { $set: { [`profile.${field}`]: FOREIGN[field] } });
      now = new Date(now.getTime() + 60_000);
      await targets.keep();
      expect(begun, field).to.have.lengthOf(1);
    }
  });
});

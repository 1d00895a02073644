import { expect } from "chai";
import { Orders } from "../../src/rails/challenge/orders.ts";
import { type ChallengeRail, challengeRailOf } from "../../src/rails/challenge/rail.ts";
import { Shops } from "../../src/rails/challenge/shops.ts";
import type { Approval, Payment } from "../../src/domain/ledger/payment.ts";
import type { Pockets } from "../../src/rails/pocket/pocket.ts";
import { MasterKey } from "../../src/secrets/master-key.ts";
import { Sealer } from "../../src/secrets/sealer.ts";
import { newId, newPayment, openScene, PERMIT, type Scene } from "../chain/support.ts";
import { newTransfer } from "../pocket/support.ts";
import { TEST_ACCESS_PROOFS } from "../support/access-proofs.ts";
import { TEST_MASTER_KEY } from "../support/payloads.ts";

const HOUR_MS = 3_600_000;
const UNITS = 1_000n;
const FUND_MS = 20_000;

const goods = (body: string) =>
  ({ httpStatus: 200, headers: {}, body, bodyEncoding: "utf8", isCut: false }) as const;

/** An approval that a person gives at this time. */
const approvedAt = (resolvedAt: number): Approval => ({
  id: newId("apr"),
  flaggedByRuleTypes: ["agent_threshold"],
  budgetContext: { budgetCents: 1, spentCents: 0, reservedCents: 0, remainingCents: 1 },
  expiresAt: resolvedAt,
  resolution: "approved",
  resolvedAt,
  resolvedBy: null,
  feedback: null,
});

describe("a purchase's key, an hour later", () => {
  let scene: Scene;
  let orders: Orders;
  let rail: ChallengeRail;
  let pockets: Pockets;
  let nowMs = Date.now();
  const clock = (): Date => new Date(nowMs);
  const shops = new Shops({ allowCidrs: ["127.0.0.0/8"] });
  before(async () => {
    scene = await openScene();
    const sealer = new Sealer(MasterKey.parse(TEST_MASTER_KEY, "a test"));
    orders = new Orders(scene.db, sealer, clock, TEST_ACCESS_PROOFS);
    const { wallets } = scene.open();
    ({ pockets } = wallets);
    rail = challengeRailOf(wallets, { orders, shops, clock });
  });
  after(async () => {
    shops.close();
    await scene.close();
  });

  it("gets what was bought first for an hour, and nothing of it after that", async () => {
    const id = newId("txn");
    await orders.keep(id, goods("first"));
    await orders.keep(id, goods("second"));
    nowMs += HOUR_MS - 1;
    expect(await orders.answerOf(id)).to.deep.equal(goods("first"));
    nowMs += 1;
    expect(await orders.answerOf(id)).to.equal(null);
  });

  /** A purchase decided without its request: its process died, or a person approved it. */
  const decided = (approval: Approval | null): Payment => {
    const payment = newPayment(1);
    const request = { ...payment.request, protocol: "x402/2", resource: "https://shop.example/" } as const;
    return { ...payment, request, approval, createdAt: nowMs };
  };
  it("has an hour from the decision or approval to buy; then it fails, and nothing is signed", async () => {
    const { profile } = await scene.funded(100);
    for (const approval of [null, approvedAt(nowMs + HOUR_MS)]) {
      const payment = decided(approval);
      const { transactionId } = payment.request;
      const settle = () =>
        rail.settle(profile, payment, 0, () => Promise.resolve({ kind: "send", permit: PERMIT }));
      nowMs = (approval?.resolvedAt ?? payment.createdAt) + HOUR_MS - 1;
      expect(await settle()).to.deep.equal({ status: "pending" });
      nowMs += 1;
      expect(await settle()).to.deep.include({ status: "failed", code: "NOT_CLAIMED" });

      expect(await rail.send(profile, payment, PERMIT)).to.deep.include({ code: "NOT_CLAIMED" });
      await pockets.fund(profile, transactionId, UNITS, FUND_MS);
      const signed = await pockets.authorize(profile.agentId, transactionId, newTransfer(UNITS), PERMIT);
      expect(signed.kind).to.equal("fenced");
    }
  });
});

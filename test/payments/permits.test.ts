import { expect } from "chai";
import type { Payment } from "../../src/domain/ledger/payment.ts";
import type { LedgerReply } from "../../src/domain/ledger/commands.ts";
import type { Permission } from "../../src/domain/ledger/permission.ts";
import { createPaymentEffects } from "../../src/payments/effects.ts";
import { newPayment } from "../chain/support.ts";
import {
  MemoryProjections,
  MemoryRail,
  silentPublishing,
  SETTLED,
  VOUCHED,
} from "../workflows/support/doubles.ts";

const PROFILE = { organizationId: "o", projectId: "p", teamId: "t", agentId: "a", name: "a" };
const SEND: Permission = { kind: "send", permit: 9 };
const WAIT: Permission = { kind: "wait", fence: 7 };

/** A process that got permit 5 with a decision, so long ago, and finds a fence at the rail; its ledger says this by now. */
interface Moment {
  readonly agoMs: number;
  readonly fence?: number;
  readonly says: Permission;
  /** Requests to the ledger, and whether the payment was sent. */
  readonly asks: number;
  readonly sent: boolean;
}

const MOMENTS: Readonly<Record<string, Moment>> = {
  "a permit is used without asking again": { agoMs: 999, says: WAIT, asks: 0, sent: true },
  "a process that slept over a decision asks again": { agoMs: 1_000, says: WAIT, asks: 1, sent: false },
  "a fenced permit is asked for again, and the agent may be paused": {
    agoMs: 0,
    fence: 7,
    says: WAIT,
    asks: 1,
    sent: false,
  },
  "a fenced permit is asked for again, and the agent may be resumed": {
    agoMs: 0,
    fence: 7,
    says: SEND,
    asks: 1,
    sent: true,
  },
};

describe("a permit to send", () => {
  for (const [title, { agoMs, asks, fence, says, sent }] of Object.entries(MOMENTS)) {
    it(title, async () => {
      const rail = new MemoryRail(() => SETTLED);
      const payment = newPayment(100);
      const { transactionId } = payment.request;
      if (fence !== undefined) await rail.fence([{ transactionId, fence }]);
      let asked = 0;
      const submit = (): Promise<LedgerReply<Payment>> => {
        asked += 1;
        return Promise.resolve({ kind: "permission", permission: says });
      };
      const effects = createPaymentEffects({
        rails: { card: rail, wallet: rail },
        projections: new MemoryProjections(),
        workflows: {
          startApproval: nothing,
          endApproval: nothing,
          startSettlement: nothing,
          textsOf: () => Promise.resolve(null),
        },
        publisher: silentPublishing,
        proofs: VOUCHED,
        clock: () => new Date(0),
        monotonicMs: () => agoMs,
        ledgers: { submit },
      });
      const decided = { permit: 5, requestedMs: 0 };
      await effects.execute(PROFILE, payment, { decided });
      expect([asked, rail.taken.has(transactionId)]).to.deep.equal([asks, sent]);
      if (!sent) expect(rail.fences.get(transactionId), "the fence is laid here, too").to.equal(7);
    });
  }
});

const nothing = (): Promise<void> => Promise.resolve();

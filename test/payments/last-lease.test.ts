import { expect } from "chai";
import { createPaymentEffects } from "../../src/payments/effects.ts";
import type { RequestLease, RailPort } from "../../src/payments/ports.ts";
import { LEASE_MS, type Lease } from "../../src/domain/ledger/lease.ts";
import type { LedgerReply } from "../../src/domain/ledger/commands.ts";
import { newPayment } from "../chain/support.ts";
import {
  MemoryProjections,
  MemoryRail,
  silentPublishing,
  SETTLED,
  VOUCHED,
} from "../workflows/support/doubles.ts";

const PROFILE = { organizationId: "o", projectId: "p", teamId: "t", agentId: "a", name: "a" };

/** What a rail is told at the last moment, so long after its payment was decided, by a ledger that says so by then. */
const MOMENTS: readonly [string, number, Lease, Lease][] = [
  ["a lease that is good is not asked for again", LEASE_MS - 1, "wait", "send"],
  ["a lease that is over is asked for again, and there may be none any more", LEASE_MS, "wait", "wait"],
  ["a lease that is over may be had again", LEASE_MS, "send", "send"],
];

describe("a lease to send, asked for by a rail that has waited", () => {
  for (const [title, waitsMs, says, told] of MOMENTS) {
    it(title, async () => {
      let nowMs = 0;
      const heard: Lease[] = [];
      const rail: RailPort = new MemoryRail(() => SETTLED);
      rail.send = async (_profile, _payment, lease?: RequestLease) => {
        nowMs += waitsMs;
        if (lease !== undefined) heard.push(await lease());
        return SETTLED;
      };
      const reply: LedgerReply = { kind: "lease", lease: says };
      const effects = createPaymentEffects({
        rails: { card: rail, wallet: rail },
        projections: new MemoryProjections(),
        workflows: { startApproval: nothing, notifyApproval: nothing, startSettlement: nothing },
        publisher: silentPublishing,
        proofs: VOUCHED,
        clock: () => new Date(nowMs),
        monotonicMs: () => nowMs,
        ledgers: { submit: () => Promise.resolve(reply) },
      });
      await effects.execute(PROFILE, newPayment(100), "server", { decidedSinceMs: 0 });
      expect(heard).to.deep.equal([told]);
    });
  }
});

const nothing = (): Promise<void> => Promise.resolve();

import { expect } from "chai";
import { createPaymentEffects } from "../../src/payments/effects.ts";
import type { AskForLeave, RailPort } from "../../src/payments/ports.ts";
import { LEAVE_MS, type Leave } from "../../src/domain/ledger/leave.ts";
import type { LedgerReply } from "../../src/domain/ledger/commands.ts";
import { newPayment } from "../chain/support.ts";
import { MemoryProjections, MemoryRail, nobody, SETTLED, VOUCHED } from "../workflows/support/doubles.ts";

const PROFILE = { organizationId: "o", projectId: "p", teamId: "t", agentId: "a", name: "a" };

/** What a rail is told at the last moment, so long after its payment was decided, by a ledger that says so by then. */
const MOMENTS: readonly [string, number, Leave, Leave][] = [
  ["leave that is good is not asked for again", LEAVE_MS - 1, "wait", "send"],
  ["leave that is over is asked for again, and there may be none any more", LEAVE_MS, "wait", "wait"],
  ["leave that is over may be had again", LEAVE_MS, "send", "send"],
];

describe("leave to send, asked for by a rail that has waited", () => {
  for (const [title, waitsMs, says, told] of MOMENTS) {
    it(title, async () => {
      let nowMs = 0;
      const heard: Leave[] = [];
      const rail: RailPort = new MemoryRail(() => SETTLED);
      rail.send = async (_profile, _payment, leave?: AskForLeave) => {
        nowMs += waitsMs;
        if (leave !== undefined) heard.push(await leave());
        return SETTLED;
      };
      const reply: LedgerReply = { kind: "leave", leave: says };
      const effects = createPaymentEffects({
        rails: { card: rail, wallet: rail },
        projections: new MemoryProjections(),
        workflows: { startApproval: nothing, tellApproval: nothing, startSettlement: nothing },
        publisher: nobody,
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
